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
const STEPS: Record<string, [number, string][] | undefined> = {
  ns: TIMES,
  bytes: SIZES,
  uj: ENERGIES,
  mj: [[1, "mJ"], [1e3, "J"]],
  percent: [[1, "%"]],
  mhz: [[1, "MHz"]],
  mw: [[1, "mW"], [1e3, "W"]],
  j: [[1, "J"]],
  wh: [[1, "Wh"]],
};
/** What cannot be parted has no decimals in its smallest unit. */
const WHOLE = new Set(["ns", "B", "µJ", "mJ", "mW"]);

/** Points in time: seconds since the start of the trace, with all digits that people compare. */
export const MOMENTS: Scale = { factor: 1e9, unit: "s", decimals: 6 };

const stepsOf = (unit: string): [number, string][] | null => STEPS[unit] ?? null;

/** Units that a column can have; none: it has only one. */
export const unitsOf = (unit: string): string[] => (stepsOf(unit) ?? []).map(([, name]) => name);

/** Decimals that tell three digits of the largest value, and no more. */
const decimalsFor = (largest: number) => (largest >= 1000 ? 1 : largest >= 100 ? 1 : largest >= 10 ? 2 : 3);

/** The scale of a column; null: its values have no unit that can be chosen. */
export function scaleOf(unit: string, largest: number, wanted: string | null = null): Scale | null {
  const steps = stepsOf(unit);
  if (!steps) return null;
  const size = Math.abs(largest);
  if (size === 0 && !wanted) return { factor: 1, unit: "", decimals: 0 };
  let best = steps[0] ?? [1, unit];
  // As in lists of times: hundreds of the smaller unit read better than parts of the larger one.
  for (const step of steps) if (wanted ? step[1] === wanted : size >= step[0]) best = step;
  const shown = size / best[0];
  return { factor: best[0], unit: best[1], decimals: best[0] === 1 && WHOLE.has(best[1]) ? 0 : decimalsFor(shown) - (unit === "percent" ? 1 : 0) };
}

/** The scale of numbers without a unit: all with as many decimals. None if they are whole. */
export const plainScale = (largest: number, whole: boolean): Scale | null => (whole ? null : { factor: 1, unit: "", decimals: largest >= 1000 ? 0 : decimalsFor(largest) + (largest < 0.1 ? 2 : 0) });

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
