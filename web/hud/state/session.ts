/** What the server holds: traces, their tables, verdicts. Read once per trace. */

import { computed, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import { ask, Fault, windowOf } from "../wire/api.ts";
import type { Schema, Session, TableInfo } from "../wire/types.ts";

export const session = signal<Session | null>(null);
/** By number of the trace. */
export const schemas = signal<Record<number, Schema>>({});
export const reports = signal<Record<number, Report>>({});

/** Windows that the reports are of; null: the trace is not followed. */
const windows: Record<number, number | null> = {};

/** For a question about a finding of a report: the window in which it was found, which may have passed since. */
export const foundWhen = (trace: number): { window?: number } => {
  const window = windows[trace] ?? null;
  return window === null ? {} : { window };
};

/** Why nothing can be shown. */
export const failure = signal<string | null>(null);

const asked = new Set<string>();

/** What was read of a trace is read anew. */
export function forget(trace: number): void {
  for (const what of ["report", "schema"]) asked.delete(`${what} ${trace}`);
}

/** Reads what is known of a trace, as far as it is there: the verdict comes before the tables. */
export async function load(trace: number): Promise<void> {
  const stage = session.value?.traces[trace]?.stage;
  const once = async (what: string, read: () => Promise<void>) => {
    const key = `${what} ${trace}`;
    if (asked.has(key)) return;
    asked.add(key);
    try {
      await read();
    } catch (error) {
      asked.delete(key);
      // The session says whose process ended; without a server nothing can be shown.
      if (!(error instanceof Fault) || ![409, 502].includes(error.status)) failure.value = error instanceof Error ? error.message : String(error);
    }
  };
  const report = stage === "verdict" || stage === "ready" ? once("report", async () => {
    const window = windowOf.trace(trace);
    const found = await ask("report", { trace });
    windows[trace] = window;
    reports.value = { ...reports.value, [trace]: found };
  }) : undefined;
  const schema = stage === "ready" ? once("schema", async () => {
    const found = await ask("schema", { trace });
    await report;
    schemas.value = { ...schemas.value, [trace]: found };
  }) : undefined;
  await Promise.all([report, schema]);
}

export async function start(): Promise<void> {
  session.value = await ask("session");
}

/** Declarations by name, of a trace. */
export const tablesOf = computed(() => {
  const all: Record<number, Map<string, TableInfo>> = {};
  for (const [trace, schema] of Object.entries(schemas.value)) {
    all[Number(trace)] = new Map(schema.tables.map((table) => [table.name, table]));
  }
  return all;
});
