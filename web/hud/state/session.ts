/** What the server holds: traces, their tables, verdicts. Read once per trace. */

import { computed, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import { ask } from "../wire/api.ts";
import type { Schema, Session, TableInfo } from "../wire/types.ts";

export const session = signal<Session | null>(null);
/** By number of the trace. */
export const schemas = signal<Record<number, Schema>>({});
export const reports = signal<Record<number, Report>>({});

/** Why nothing can be shown. */
export const failure = signal<string | null>(null);

const asked = new Set<number>();

/** Reads what is known of a trace, unless that is done. */
export async function load(trace: number): Promise<void> {
  if (asked.has(trace)) return;
  asked.add(trace);
  try {
    const [schema, report] = await Promise.all([ask("schema", { trace }), ask("report", { trace })]);
    schemas.value = { ...schemas.value, [trace]: schema };
    reports.value = { ...reports.value, [trace]: report };
  } catch (error) {
    asked.delete(trace);
    failure.value = error instanceof Error ? error.message : String(error);
  }
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
