/**
 * The view as the address holds it: `#v1=` and the view as JSON, without what stands at its default.
 *
 * Whoever changes what a field means raises VERSION and adds a step to UPGRADES that turns the old form into the new one: links
 * in tickets live longer than programs.
 */

import { later } from "../base/awaited.ts";
import { EMPTY, view, type View } from "./view.ts";

export const VERSION = 1;

type Old = Record<string, unknown>;

/** Step n turns version n into n + 1. */
const UPGRADES: ((old: Old) => Old)[] = [
  // Version 0 was never given out; the step shows the form.
  (old) => old,
];

/** The address of a view. */
export function encode(of: View): string {
  const out: Old = {};
  for (const key of Object.keys(EMPTY) as (keyof View)[]) {
    if (JSON.stringify(of[key]) !== JSON.stringify(EMPTY[key])) out[key] = of[key];
  }
  return `#v${VERSION}=${encodeURIComponent(JSON.stringify(out))}`;
}

const isRange = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.length === 2 && value.every((n) => Number.isFinite(n)) && value[0] < value[1]);

const CHECKS: { [K in keyof View]: (value: unknown) => boolean } = {
  trace: (v) => Number.isInteger(v) && (v as number) >= 0,
  panel: (v) => typeof v === "string",
  zoom: isRange,
  selection: isRange,
  past: (v) => Array.isArray(v) && v.length <= 50 && v.every(isRange),
  filters: (v) =>
    Array.isArray(v) && v.length <= 50 &&
    v.every((f) => f && ["process", "thread", "cpu", "module", "frame"].includes(f.kind) && ["string", "number"].includes(typeof f.value) && typeof f.label === "string"),
  other: (v) => v === null || (typeof v === "object" && v !== null && Number.isInteger((v as { trace: unknown }).trace) && isRange((v as { range: unknown }).range)),
  finding: (v) => v === null || typeof v === "string",
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
  return { view: out as unknown as View, newer: version > VERSION };
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
