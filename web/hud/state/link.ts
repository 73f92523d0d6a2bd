/**
 * The view as the address holds it: `#v2=` and the view as JSON, without what stands at its default. Traces, processes and threads
 * stand there as what they are in any server: numbers are looked up when the link is opened (`place`, `identity.ts`).
 *
 * Whoever changes what a field means raises VERSION and adds a step to UPGRADES that turns the old form into the new one: links
 * in tickets live longer than programs.
 */

import { later } from "../base/awaited.ts";
import { visible } from "../base/value.ts";
import type { TraceInfo } from "../wire/types.ts";
import { note } from "./notes.ts";
import { jump, lookFor } from "./opened.ts";
import { session } from "./session.ts";
import { EMPTY, view, type Filter, type View } from "./view.ts";

export const VERSION = 2;

type Old = Record<string, unknown>;

/** Step n turns version n into n + 1. */
const UPGRADES: ((old: Old) => Old)[] = [
  // Version 0 was never given out; the step shows the form.
  (old) => old,
  // Version 1 had numbers: of the trace on its server, of processes and threads in the trace.
  (old) => ({
    ...old,
    trace: Number.isInteger(old["trace"]) ? { at: old["trace"] } : { at: 0 },
    filters: (Array.isArray(old["filters"]) ? old["filters"] : []).map((filter: unknown) => {
      const { value, ...rest } = (filter ?? {}) as Filter;
      return isPersonal(rest) && typeof value === "number" ? { ...rest, was: value } : filter;
    }),
    ...(isObject(old["other"]) ? { other: { ...old["other"], trace: { at: old["other"]["trace"] } } } : {}),
  }),
];

/** A trace in a link: what tells it from others. `at` alone is all that links of version 1 know. */
interface TraceRef {
  at: number;
  name?: string;
  start_ms?: number | null;
  last_ns?: number;
  cpus?: number;
  trace_id?: string;
}

const isObject = (value: unknown): value is Old => typeof value === "object" && value !== null && !Array.isArray(value);
const isPersonal = (filter: { kind?: unknown }) => filter.kind === "process" || filter.kind === "thread";

function refer(at: number): TraceRef {
  const one = session.value?.traces[at];
  if (!one) return { at };
  const { name, start_ms, last_ns, cpus, trace_id } = one;
  return { at, name, start_ms, last_ns, cpus, ...(trace_id ? { trace_id } : {}) };
}

/** Ids of the traces that an address names. */
export function idsIn(hash: string): string[] {
  try {
    return [...decodeURIComponent(hash).matchAll(/"trace_id":"([0-9A-Za-z_-]+)"/g)].map((found) => found[1] ?? "");
  } catch {
    return [];
  }
}

/** The number here of the trace that a link shows; null if it is not here. */
function place(of: unknown): number | null {
  const ref = (isObject(of) ? of : { at: 0 }) as unknown as TraceRef;
  const traces = session.value?.traces ?? [];
  // The same place, if it fits, before others that do.
  const order = [...traces].sort((a, b) => Number(b.trace === ref.at) - Number(a.trace === ref.at));
  const first = (fits: (one: TraceInfo) => boolean) => order.find(fits)?.trace ?? null;
  if (ref.name === undefined) return first((one) => one.trace === ref.at);
  if (ref.trace_id && traces.some((one) => one.trace_id)) return first((one) => one.trace_id === ref.trace_id);
  const same = (one: TraceInfo) => one.start_ms === (ref.start_ms ?? null);
  return first((one) => same(one) && one.name === ref.name) ?? first((one) => same(one) && one.start_ms !== null && one.last_ns === ref.last_ns && one.cpus === ref.cpus);
}

const nameIn = (of: unknown) => {
  const ref = isObject(of) ? of : {};
  return typeof ref["name"] === "string" ? visible(ref["name"]) : `trace ${Number(ref["at"]) + 1}`;
};

/** The address of a view. */
export function encode(of: View): string {
  const out: Old = {};
  for (const key of Object.keys(EMPTY) as (keyof View)[]) {
    if (JSON.stringify(of[key]) !== JSON.stringify(EMPTY[key])) out[key] = of[key];
  }
  out["trace"] = refer(of.trace);
  if (of.other) out["other"] = { ...of.other, trace: refer(of.other.trace) };
  if (of.filters.length > 0) {
    out["filters"] = of.filters.map(({ value, who, was, ...rest }) => {
      if (!isPersonal(rest)) return { ...rest, value };
      return who && Object.keys(who).length > 0 ? { ...rest, who } : { ...rest, was: value ?? was };
    });
  }
  return `#v${VERSION}=${encodeURIComponent(JSON.stringify(out))}`;
}

const isRange = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.length === 2 && value.every((n) => Number.isFinite(n)) && value[0] < value[1]);

/** Names of panels and findings stand in lists by name, in which every object has a `constructor`. */
const isName = (value: unknown): boolean => typeof value === "string" && !(value in Object.prototype);

const CHECKS: { [K in keyof View]: (value: unknown) => boolean } = {
  trace: isObject,
  panel: isName,
  beside: (v) => v === null || isName(v),
  zoom: isRange,
  selection: isRange,
  past: (v) => Array.isArray(v) && v.length <= 50 && v.every(isRange),
  filters: (v) =>
    Array.isArray(v) && v.length <= 50 &&
    v.every((f) => f && ["process", "thread", "cpu", "module", "frame"].includes(f.kind) && typeof f.label === "string" && (isPersonal(f) ? isObject(f.who) || Number.isInteger(f.was) : ["string", "number"].includes(typeof f.value))),
  other: (v) => v === null || (isObject(v) && isObject(v["trace"]) && isRange(v["range"])),
  finding: (v) => v === null || isName(v),
  settings: (v) => typeof v === "object" && v !== null && !Array.isArray(v),
};

/** The view of an address; what makes no sense in it is left at its default. null: the address holds none. */
export function decode(hash: string): { view: View; newer: boolean } | null {
  const found = /^#v(\d+)=(.*)$/.exec(hash);
  if (!found) return null;
  const version = Number(found[1]);
  let old: Old;
  try {
    const parsed: unknown = JSON.parse(decodeURIComponent(found[2] ?? ""));
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
    old = parsed as Old;
  } catch {
    return null;
  }
  for (let step = version; step < VERSION; step += 1) old = UPGRADES[step]?.(old) ?? old;
  const out = { ...EMPTY } as Record<string, unknown>;
  for (const key of Object.keys(EMPTY) as (keyof View)[]) {
    if (key in old && CHECKS[key](old[key])) out[key] = old[key];
  }
  return { view: here(out), newer: version > VERSION };
}

/** A link's view with the numbers of this server; what is not here is said. */
function here(link: Record<string, unknown>): View {
  const trace = place(link["trace"]);
  const other = link["other"] as (Old & { range: View["other"] }) | null;
  const before = other ? place(other["trace"]) : null;
  if (other && before === null) note(`The link compares with ${nameIn(other["trace"])}, which is not open here: nothing is compared.`);
  const filters = (link["filters"] as Filter[]).map((filter) => (isPersonal(filter) ? { ...filter, value: null } : filter));
  const made = { ...link, filters, trace: trace ?? 0, other: other && before !== null ? { ...other, trace: before } : null } as unknown as View;
  if (trace !== null) return made;
  const shown = session.value?.traces[0];
  note(`The link shows ${nameIn(link["trace"])}, which is not open here${shown ? `. This is ${visible(shown.name)}` : ""}. Open the other trace and follow the link again.`);
  const ref = isObject(link["trace"]) ? (link["trace"] as unknown as TraceRef) : null;
  if (ref?.name) void lookFor(ref.name, ref.trace_id ?? "", location.hash);
  return { ...made, panel: made.panel, zoom: null, selection: null, past: [], finding: null, settings: {} };
}

/** Effects hear of a change only when all is said: the view itself tells that it is an amendment. */
let amended: View | undefined;

/** Changes the view in the entry that stands: what its address asked for is not there, and back must not lead to it again. */
export function amend(change: Partial<View>): void {
  amended = { ...view.value, ...change };
  view.value = amended;
}

/** Changes this close together (milliseconds) are one step: a hand that drags selects anew every 150. */
const REST = 200;

/**
 * Keeps the address and the view the same. A step becomes an entry of the browser's history at once, so that the back button never
 * leaves the page for being pressed early; what follows before the hand rests goes into the same entry. Another panel or trace is
 * always a step.
 */
export function follow(): { newer: boolean } {
  let newer = false;
  /** What an address without a view shows. */
  const start = view.value;
  /** The view of the browser's entry. */
  let held = start;
  /** The view as it was last, perhaps not written yet. */
  let last = start;
  let address = location.hash;
  let resting: (() => void) | undefined;
  const rest = () => {
    resting?.();
    resting = undefined;
  };
  const read = () => {
    const found = location.hash === "" ? { view: start, newer: false } : decode(location.hash);
    if (!found) return;
    rest();
    newer = found.newer;
    address = location.hash;
    held = found.view;
    last = found.view;
    view.value = found.view;
  };
  jump.to = (hash) => {
    history.replaceState(null, "", hash);
    read();
  };
  if (address !== "") read();
  const moved = () => {
    if (location.hash !== address) read();
  };
  addEventListener("hashchange", moved);
  addEventListener("popstate", moved);
  const write = (how: "pushState" | "replaceState", of: View) => {
    const hash = encode(of);
    if (encode(held) === hash) return;
    held = of;
    if (hash === address) return;
    address = hash;
    history[how](null, "", hash);
  };
  view.subscribe((now) => {
    const before = last;
    last = now;
    if (encode(now) === encode(held)) return rest();
    if (now === amended) return write("replaceState", now);
    const step = now.panel !== held.panel || now.trace !== held.trace;
    if (step) write("replaceState", before);
    if (step || !resting) write("pushState", now);
    rest();
    resting = later(() => {
      resting = undefined;
      write("replaceState", last);
    }, REST);
  });
  return { newer };
}
