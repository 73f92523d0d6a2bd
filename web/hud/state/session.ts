/** What the server holds: traces, their tables, verdicts. Read once per trace. */

import { computed, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import { ask } from "../wire/api.ts";

export interface TraceInfo {
  trace: number;
  name: string;
  /** Start by the clock, milliseconds since 1970 UTC. */
  start_ms: number | null;
  /** What tells this recording from all others, if the server knows. */
  trace_id?: string;
  first_ns: number;
  last_ns: number;
  cpus: number;
  sentence: string;
}

export interface Session {
  program: string;
  readonly: boolean;
  /** Folders whose traces may be opened. */
  folders: string[];
  traces: TraceInfo[];
}

export interface ColumnInfo {
  name: string;
  type: string;
  unit: string;
  role: string;
  doc: string;
}

export interface TableInfo {
  name: string;
  title: string;
  doc: string;
  sorted_by: string | null;
  rows: number;
  why_empty: string | null;
  recording: string | null;
  columns: ColumnInfo[];
}

export interface MetricInfo {
  name: string;
  about: string;
  manual: string;
  unit: string;
  table: string;
  there: boolean;
}

export interface Schema {
  tables: TableInfo[];
  views: { name: string; title: string; doc: string; columns: [string, string][]; sql: string }[];
  functions: { name: string; args: string[]; about: string }[];
  scalars: { usage: string; about: string }[];
  metrics: MetricInfo[];
}

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
    const [schema, report] = await Promise.all([ask<Schema>("schema", { trace }), ask<Report>("report", { trace })]);
    schemas.value = { ...schemas.value, [trace]: schema };
    reports.value = { ...reports.value, [trace]: report };
  } catch (error) {
    asked.delete(trace);
    failure.value = error instanceof Error ? error.message : String(error);
  }
}

export async function start(): Promise<void> {
  session.value = await ask<Session>("session");
}

/** Declarations by name, of a trace. */
export const tablesOf = computed(() => {
  const all: Record<number, Map<string, TableInfo>> = {};
  for (const [trace, schema] of Object.entries(schemas.value)) {
    all[Number(trace)] = new Map(schema.tables.map((table) => [table.name, table]));
  }
  return all;
});
