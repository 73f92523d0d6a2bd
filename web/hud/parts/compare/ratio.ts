/** How two figures differ, in words. */

import { count } from "../../../src/lib/format.ts";
import type { Change, Ratio } from "../../wire/types.ts";
import type { Run } from "./runs.ts";

/** A ratio in words; its interval where there is one. */
export function ratio(change: { ratio: number | null; ratio_low?: number | null; ratio_high?: number | null; significant?: boolean }): string {
  if (change.ratio === null) return "new";
  if (change.ratio === 0) return "gone";
  const of = (value: number) => `${value < 10 ? value.toFixed(2) : count(value)}×`;
  const low = change.ratio_low ?? null;
  const high = change.ratio_high ?? null;
  return `${of(change.ratio)}${low !== null && high !== null ? ` (${of(low)} to ${of(high)})` : ""}`;
}

/** The ratio of sums as that of sums for each run. */
export function perRun<T extends Partial<Ratio>>(change: T | null | undefined, run: Run | null): T | undefined {
  if (!change || !run) return change ?? undefined;
  const by = run.times[0] / run.times[1];
  const [ratio, low, high] = [change.ratio, change.ratio_low, change.ratio_high].map((value) => (value == null ? null : value * by));
  const known = (low ?? null) !== null && (high ?? null) !== null;
  return { ...change, ratio, ratio_low: low, ratio_high: high, ...(known ? { significant: (low ?? 0) > 1 || (high ?? 0) < 1 } : {}) };
}

/** Whether it is more than chance, with what is new or gone as such. */
export const chance = (change: Change) => `${change.what === "new" || change.what === "gone" ? `${change.what}, ` : ""}${change.significant ? "more than chance" : "may be chance"}`;
