/**
 * Who the filters speak of when the trace changes, or a link is opened elsewhere. Numbers of processes and threads count the instances of
 * one trace: in another one they are somebody else's. Filters therefore know who they mean (`who`: name, process id, start), and their
 * number is looked up in each trace. Until that is done the page draws nothing.
 */

import { computed, effect } from "@preact/signals";
import { pending } from "../base/awaited.ts";
import { visible } from "../base/value.ts";
import { ask } from "../wire/api.ts";
import type { Known } from "../wire/types.ts";
import { amend } from "./link.ts";
import { note } from "./notes.ts";
import { session } from "./session.ts";
import { look, scope, view, type Filter, type View } from "./view.ts";

const personal = (filter: Filter) => filter.kind === "process" || filter.kind === "thread";
/** Somebody whose number in this trace is not known yet. */
const lost = (filter: Filter) => filter.value === null;
/** True if it is known who he is, not only that nobody knows. */
const isKnown = (filter: Filter) => Object.keys(filter.who ?? {}).length > 0;
/** Somebody of whom only the number is known. */
const nameless = (filter: Filter) => personal(filter) && !lost(filter) && !filter.who;

/** True until every filter has its number in this trace. */
export const settling = computed(() => view.value.filters.some(lost));

const nameOf = (trace: number) => visible(session.value?.traces[trace]?.name ?? "the trace");
const called = (filter: Filter) => `${filter.kind} ${visible(filter.label)}`;

async function identify(trace: number, asked: Record<string, unknown>[]): Promise<(Known | null)[]> {
  return asked.length === 0 ? [] : (await ask("identity", { trace, asked })).known;
}

/** Whether an old link, which has a number and what people read of it, means this one. */
function isMeant(filter: Filter, found: Known): boolean {
  const { label } = filter;
  if (label === found.label) return true;
  const { name, tid } = (found.who ?? {}) as { name?: string; tid?: number };
  return filter.kind === "process" ? label === name : new RegExp(`(^|\\D)${tid}(\\D|$)`).test(label);
}

/** What an old link says in words: `report.exe (1028)`. */
function inWords(filter: Filter): Record<string, unknown> | null {
  const found = filter.kind === "process" ? /^(.+) \((\d+)\)$/.exec(filter.label) : null;
  return found ? { kind: "process", who: { name: found[1], pid: Number(found[2]) } } : null;
}

/** The same filter with its number in this trace; null if there is nobody of that kind. */
async function settle(trace: number, filters: Filter[]): Promise<(Filter | null)[]> {
  const found = await identify(trace, filters.map((filter) => ({ kind: filter.kind, ...(isKnown(filter) ? { who: filter.who } : { value: filter.was ?? null }) })));
  const sure = filters.map((filter, at) => {
    const one = found[at];
    return one && (isKnown(filter) || isMeant(filter, one)) ? one : null;
  });
  const spoken = filters.map((filter, at) => (sure[at] || isKnown(filter) ? null : inWords(filter)));
  const heard = await identify(trace, spoken.filter((one) => one !== null));
  return filters.map(({ kind, label, not }, at) => {
    const one = sure[at] ?? (spoken[at] ? heard.shift() : null);
    return one ? { kind, value: one.value, label, ...(not ? { not } : {}), ...(one.who ? { who: one.who } : {}) } : null;
  });
}

/** Puts others in the place of filters, wherever they stand by then. */
function replace(before: Filter[], after: (Filter | null)[]): void {
  const filters = view.value.filters.flatMap((filter) => {
    const at = before.indexOf(filter);
    const other = at < 0 ? filter : after[at];
    return other ? [other] : [];
  });
  amend({ filters });
}

/** Learns who those are of whom only the number is known. */
async function learn(): Promise<void> {
  const { trace, filters } = view.value;
  const asked = filters.filter(nameless);
  const found = await identify(trace, asked.map(({ kind, value }) => ({ kind, value })));
  if (view.value.trace !== trace || asked.length === 0) return;
  replace(asked, asked.map((filter, at) => ({ ...filter, ...(found[at]?.who ? { who: found[at].who } : { who: {} }) })));
}

async function settleAll(): Promise<void> {
  const { trace, filters } = view.value;
  const asked = filters.filter(lost);
  let found: (Filter | null)[];
  try {
    found = await settle(trace, asked);
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
    found = asked.map(() => null);
  }
  if (view.value.trace !== trace) return;
  asked.forEach((filter, at) => {
    if (found[at]) return;
    note(
      isKnown(filter)
        ? `${called(filter)} is not in ${nameOf(trace)}: the filter was removed, and what is shown is not restricted to it.`
        : `The link is of an older version and does not say for certain who ${called(filter)} is: the filter was removed.`,
    );
  });
  replace(asked, found);
}

const looked = new Set<string>();

/** Modules and functions are names: their filters stay, but that nothing has such a name is said. */
async function lookFor(trace: number, filters: Filter[]): Promise<void> {
  const asked = filters.filter(({ kind, value }) => ["module", "frame"].includes(kind) && !looked.has(JSON.stringify([trace, kind, value])));
  for (const { kind, value } of asked) looked.add(JSON.stringify([trace, kind, value]));
  const found = await identify(trace, asked.map(({ kind, value }) => ({ kind, value })));
  asked.forEach((filter, at) => {
    if (!found[at]) note(`${called(filter)} is not in ${nameOf(trace)}.`);
  });
}

/** What panels keep, without numbers of one trace: threads, rows, conditions on ids. */
function portable(settings: View["settings"]): View["settings"] {
  const isId = (column: unknown) => typeof column === "string" && /(^|[._])(upid|utid|id)$/.test(column);
  const out: View["settings"] = {};
  for (const [panel, kept] of Object.entries(settings)) {
    // What was written about one trace is not about another, nor is what was looked at.
    if (["notes", "inspect", "tracks"].includes(panel)) continue;
    const { picked: _picked, path: _path, row: _row, lane: _lane, where, ...rest } = kept as Record<string, unknown>;
    const conditions = Array.isArray(where) ? (where as { column?: unknown; value?: unknown }[]).filter((one) => !(isId(one.column) && typeof one.value === "number")) : where;
    out[panel] = where === undefined ? rest : { ...rest, where: conditions };
  }
  return out;
}

/** A view of one trace for another: without its times and numbers. */
export function elsewhere(of: View, trace: number): View {
  const cpus = session.value?.traces[trace]?.cpus ?? 0;
  const filters = of.filters.flatMap((filter) => {
    if (filter.kind === "cpu" && cpus > 0 && Number(filter.value) >= cpus) {
      note(`${nameOf(trace)} has no processor ${filter.value}: the filter was removed.`);
      return [];
    }
    if (!personal(filter)) return [filter];
    return [{ ...filter, value: null, ...(typeof filter.value === "number" ? { was: filter.value } : {}) }];
  });
  return { ...of, trace, zoom: null, selection: null, past: [], finding: null, filters, settings: portable(of.settings) };
}

/** Shows another trace. Filters follow to those whom they mean; times mean nothing there. */
export async function toTrace(trace: number, change: Partial<View> = {}): Promise<void> {
  if (trace === view.value.trace) return look(change);
  if (view.value.zoom || view.value.selection) note("The range is of the other trace: this one is shown whole.");
  const done = pending();
  try {
    await learn();
  } catch {
    // Who they are is then asked by what people read of them.
  }
  look({ ...elsewhere(view.value, trace), ...change });
  done();
}

/** Shows the other side of a comparison. */
export function swap(): void {
  const { other, trace } = view.value;
  if (other) void toTrace(other.trace, { zoom: other.range, selection: null, past: [], finding: null, other: { trace, range: scope.value } });
}

/** Keeps filters and their numbers together. */
export function follow(): void {
  effect(() => {
    const { trace, filters } = view.value;
    // Who is who is not known before the trace is read.
    if (session.value?.traces[trace]?.stage !== "ready") return;
    const done = pending();
    const work = filters.some(lost) ? settleAll() : filters.some(nameless) ? learn() : lookFor(trace, filters);
    // What cannot be asked now is asked when the view changes next.
    void work.catch(() => undefined).finally(done);
  });
}
