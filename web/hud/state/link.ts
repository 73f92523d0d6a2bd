/**
 * The view as the address holds it: `#v1=` and the view as JSON, without what stands at its default.
 *
 * Whoever changes what a field means raises VERSION and adds a step to UPGRADES that turns the old form into the new one: links
 * in tickets live longer than programs.
 */

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

let written = "";

/** Keeps the address and the view the same. Steps become entries of the browser's history, small changes do not. */
export function follow(): { newer: boolean } {
  let newer = false;
  const read = () => {
    const found = decode(location.hash);
    if (found) {
      newer = found.newer;
      written = location.hash;
      view.value = found.view;
    }
  };
  read();
  addEventListener("hashchange", () => {
    if (location.hash !== written) read();
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  view.subscribe((now) => {
    const hash = encode(now);
    if (hash === written) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      written = hash;
      history.pushState(null, "", hash);
    }, 150);
  });
  addEventListener("popstate", () => {
    if (location.hash !== written) read();
  });
  return { newer };
}
