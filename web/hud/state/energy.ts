/** Estimated energies: all of a trace in one unit, that of the largest on its bill. */

import { energy as estimated, energyRange, energyUnit } from "../../src/lib/format.ts";
import { report } from "./view.ts";

const unit = () => energyUnit((report.value?.bill ?? []).reduce((most, row) => Math.max(most, row.energy_j ?? 0), 0));

/** Both bounds, because the model is not surer than that; and their unit. */
export function energy(low: number, high: number): [string, string] {
  const of = unit();
  return [energyRange(low, high, of).split("\u00a0")[0] ?? "", of[1]];
}

/** The middle of both, and its unit. */
export function middle(joules: number): [string, string] {
  const of = unit();
  return [estimated(joules, of).split("\u00a0")[0] ?? "", of[1]];
}
