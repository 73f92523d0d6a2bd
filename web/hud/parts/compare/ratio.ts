/** How two figures differ, in words. */

import { count } from "../../../src/lib/format.ts";
import type { Change } from "../../wire/types.ts";

/** A ratio in words; its interval where there is one. */
export function ratio(change: { ratio: number | null; ratio_low?: number | null; ratio_high?: number | null; significant?: boolean }): string {
  if (change.ratio === null) return "new";
  if (change.ratio === 0) return "gone";
  const of = (value: number) => `${value < 10 ? value.toFixed(2) : count(value)}×`;
  const low = change.ratio_low ?? null;
  const high = change.ratio_high ?? null;
  return `${of(change.ratio)}${low !== null && high !== null ? ` (${of(low)} to ${of(high)})` : ""}`;
}

/** Whether it is more than chance, with what is new or gone as such. */
export const chance = (change: Change) => `${change.what === "new" || change.what === "gone" ? `${change.what}, ` : ""}${change.significant ? "more than chance" : "may be chance"}`;
