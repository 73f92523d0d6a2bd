/** One unit for a column, chosen by its largest value: numbers below each other can be compared and added. */

export interface Scale {
  /** What one of the unit is in the unit of the data. */
  factor: number;
  unit: string;
  decimals: number;
}

const TIMES: [number, string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const SIZES: [number, string][] = [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"]];
const ENERGIES: [number, string][] = [[1, "µJ"], [1e3, "mJ"], [1e6, "J"]];

const stepsOf = (unit: string): [number, string][] | null => (unit === "ns" ? TIMES : unit === "bytes" ? SIZES : unit === "uj" || unit === "micro_joules" ? ENERGIES : null);

/** Units that a column can have; none: it has only one. */
export const unitsOf = (unit: string): string[] => (stepsOf(unit) ?? []).map(([, name]) => name);

/** Decimals that tell three digits of the largest value, and no more. */
const decimalsFor = (largest: number) => (largest >= 1000 ? 1 : largest >= 100 ? 1 : largest >= 10 ? 2 : 3);

/** The scale of a column; null: its values have no unit that can be chosen. */
export function scaleOf(unit: string, largest: number, wanted: string | null = null): Scale | null {
  const steps = stepsOf(unit);
  if (!steps) return null;
  const size = Math.abs(largest);
  let best = steps[0] ?? [1, unit];
  // As in lists of times: hundreds of the smaller unit read better than parts of the larger one.
  for (const step of steps) if (wanted ? step[1] === wanted : size >= step[0]) best = step;
  const shown = size / best[0];
  return { factor: best[0], unit: best[1], decimals: best[0] === 1 ? 0 : decimalsFor(shown) };
}

/** A value of such a column, without its unit. */
export function scaled(value: number, scale: Scale): string {
  const shown = value / scale.factor;
  // What is small is not nothing.
  const least = 10 ** -scale.decimals;
  if (shown !== 0 && Math.abs(shown) < least / 2) return `${shown < 0 ? ">−" : "<"}${least.toFixed(scale.decimals)}`;
  const [whole = "0", digits] = Math.abs(shown).toFixed(scale.decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return `${shown < 0 ? "−" : ""}${grouped}${digits ? `.${digits}` : ""}`;
}
