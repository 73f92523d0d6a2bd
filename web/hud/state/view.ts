/**
 * What is being looked at: trace, panel, range, filters, settings of panels. All of it stands in the address (`link.ts`), so that a
 * link shows others the same, and the browser's back button undoes every step.
 */

import { computed, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import type { Filter as WireFilter, FilterKind, Part as WirePart, PartVerdict, Schema, TableInfo, TraceInfo } from "../wire/types.ts";
import { visible } from "../base/value.ts";
import { schemas, session, tablesOf, reports } from "./session.ts";

/** Nanoseconds since the start of the trace's clock; the end does not belong to it. */
export type Range = [number, number];

/** Restricts all panels. `kind` says which columns it speaks of: those with such a role, or frames on stacks. */
export interface Filter {
  kind: FilterKind;
  /** upid, utid, number of a processor; name of a module; `module!function`. null: not looked up in this trace yet (`identity.ts`). */
  value: number | string | null;
  /** What people read. */
  label: string;
  not?: boolean;
  /** Who a process or thread is in any trace: name, process id, start. */
  who?: Record<string, unknown>;
  /** The number that a link of an older version has. */
  was?: number;
}

/** What this is compared with: the state before. */
export interface Other {
  trace: number;
  range: Range | null;
}

export interface View {
  trace: number;
  panel: string;
  /** A second panel, to the right of it. */
  beside: string | null;
  /** The part of the trace that is shown; null: all of it. */
  zoom: Range | null;
  /** The part that is selected: panels count this. null: what is shown. */
  selection: Range | null;
  /** Zooms to go back to. */
  past: (Range | null)[];
  filters: Filter[];
  other: Other | null;
  /** The finding that was clicked, if the rest is its doing. */
  finding: string | null;
  /** By panel. */
  settings: Record<string, unknown>;
}

export const EMPTY: View = {
  trace: 0,
  panel: "overview",
  beside: null,
  zoom: null,
  selection: null,
  past: [],
  filters: [],
  other: null,
  finding: null,
  settings: {},
};

export const view = signal<View>(EMPTY);

/** What is drawn before the view has it (a selection or a time range while a hand moves) belongs to the panel that is left: it is caught up with first. */
export const ahead: { catchUp?: () => void } = {};

/** Changes some of it. */
export function look(change: Partial<View>): void {
  if (change.panel !== undefined || change.trace !== undefined) ahead.catchUp?.();
  view.value = { ...view.value, ...change };
}

const kindOf = (value: unknown) => (Array.isArray(value) ? "list" : value === null ? "null" : typeof value);

/** What a panel keeps of itself. Links come from anybody: what is of another kind than what stands there usually is left out. */
export function setting<T>(panel: string, fallback: T): T {
  const kept = view.value.settings[panel];
  if (kindOf(kept) !== "object") return fallback;
  const usual = new Map<string, unknown>(Object.entries(fallback ?? {}));
  const fits = ([key, value]: [string, unknown]) => (usual.get(key) ?? null) === null || kindOf(usual.get(key)) === kindOf(value);
  return { ...fallback, ...(Object.fromEntries(Object.entries(kept as object).filter(fits)) as T) };
}

/** Forgets what a panel keeps of itself. */
export function unset(panel: string): void {
  look({ settings: Object.fromEntries(Object.entries(view.value.settings).filter(([name]) => name !== panel)) });
}

/** Changes what a panel keeps of itself. */
export function set<T extends object>(panel: string, change: Partial<T>): void {
  const kept = (view.value.settings[panel] ?? {}) as T;
  look({ settings: { ...view.value.settings, [panel]: { ...kept, ...change } } });
}

export const trace = computed<TraceInfo | null>(() => session.value?.traces[view.value.trace] ?? null);
export const schema = computed<Schema | null>(() => schemas.value[view.value.trace] ?? null);
/** The verdict of the whole trace, with what it says of the recording itself. */
export const wholeReport = computed(() => reports.value[view.value.trace] ?? null);

/** A table's declaration in the trace that is shown. */
export const table = (name: string): TableInfo | undefined => tablesOf.value[view.value.trace]?.get(name);

/** The whole trace. */
export const whole = computed<Range>(() => (trace.value ? [trace.value.first_ns, trace.value.last_ns + 1] : [0, 1]));
/** What the timeline shows. */
export const shown = computed<Range>(() => view.value.zoom ?? whole.value);
/** What panels count: the selection, else what is shown; null is the whole trace. */
export const scope = computed<Range | null>(() => view.value.selection ?? view.value.zoom);

/** The verdict of a part, which was asked for (`within.ts`). */
export const ranged = signal<{ trace: number; found: PartVerdict; report: Report } | null>(null);
/** The same as long as its part is the one that panels count. */
export const inForce = computed(() => {
  const now = ranged.value;
  const same = now?.trace === view.value.trace && JSON.stringify(now.found.range) === JSON.stringify(scope.value);
  return same ? now : null;
});
/** The verdict that all views show: that of the part, if it was asked for, else that of the trace. */
export const report = computed(() => inForce.value?.report ?? wholeReport.value);

/** Zooms in (or to anything), in a way that `back` undoes. */
export function zoomTo(range: Range | null): void {
  const { zoom, past } = view.value;
  look({ zoom: range, selection: null, past: [...past.slice(-49), zoom] });
}

/** Takes the last zoom back; without one, the selection. */
export function back(): void {
  const { past, selection } = view.value;
  if (selection) look({ selection: null, finding: null });
  else if (past.length > 0) look({ zoom: past[past.length - 1] ?? null, past: past.slice(0, -1) });
}

export const sameFilter = (a: Filter, b: Filter) =>
  a.kind === b.kind && a.value === b.value && (a.not ?? false) === (b.not ?? false) && (a.value !== null || a.label === b.label);

export function addFilter(filter: Filter): void {
  const { filters } = view.value;
  if (!filters.some((one) => sameFilter(one, filter))) look({ filters: [...filters, filter] });
}

export function removeFilter(filter: Filter): void {
  look({ filters: view.value.filters.filter((one) => !sameFilter(one, filter)) });
}

/** Filters as people read them: of those of one kind, one is enough. They stand beside each other. */
export function worded(filters: Filter[]): { filter: Filter; text: string }[] {
  const kinds = [...new Set(filters.map((one) => one.kind))];
  return kinds.flatMap((kind) => {
    const mine = filters.filter((one) => one.kind === kind);
    const wanted = mine.filter((one) => !one.not).map((filter, at) => ({ filter, text: `${at > 0 ? "or" : kind} ${visible(filter.label)}` }));
    return [...wanted, ...mine.filter((one) => one.not).map((filter) => ({ filter, text: `not ${kind} ${visible(filter.label)}` }))];
  });
}

/** Filters that mean something for DPCs and ISRs: their process and thread are those that they interrupted, by chance. */
export const ofInterrupts = <T extends { kind: string }>(filters: T[]) => filters.filter((one) => one.kind === "cpu" || one.kind === "module");

/** What every question about a part of the trace carries. */
export type Part = WirePart & { trace: number };

export const part = computed<Part>(() => ({
  trace: view.value.trace,
  range: scope.value,
  filters: view.value.filters.flatMap(({ kind, value, not }): WireFilter[] => (value === null ? [] : [{ kind, value, not: not ?? false }])),
}));
