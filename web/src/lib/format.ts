/** Numbers as people read them, by the rules of `crates/foundation/base/src/units.rs`: `test/formats.json` holds both to them. */

const NBSP = "\u00a0";

/** A number with separators. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** This many significant digits; whole numbers are kept whole. */
function significant(value: number, wanted: number): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "unknown";
  const size = Math.abs(value);
  const decimals = Math.min(9, Math.max(0, wanted - 1 - Math.floor(Math.log10(size))));
  const scale = 10 ** decimals;
  const [whole = "0", fraction = ""] = (Math.round(size * scale) / scale).toFixed(decimals).split(".");
  const digits = fraction.replace(/0+$/, "");
  const text = `${whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",")}${digits === "" ? "" : `.${digits}`}`;
  return value < 0 && text !== "0" ? `-${text}` : text;
}

/** About three significant digits. */
export const number = (value: number): string => significant(value, 3);

/** A span of time in the unit that a person would choose. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size < 999.5) return `${number(ns)}${NBSP}ns`;
  if (size < 999.5e3) return `${number(ns / 1e3)}${NBSP}µs`;
  if (size < 999.5e6) return `${number(ns / 1e6)}${NBSP}ms`;
  if (size < 59.95e9) return `${number(ns / 1e9)}${NBSP}s`;
  const pair = (value: number, per: number, large: string, small: string, width: number) => {
    const rest = value % per;
    const whole = `${ns < 0 ? "-" : ""}${count(Math.floor(value / per))}${NBSP}${large}`;
    return rest === 0 ? whole : `${whole} ${String(rest).padStart(width, "0")}${NBSP}${small}`;
  };
  const seconds = Math.round(size / 1e9);
  if (seconds < 3600) return pair(seconds, 60, "min", "s", 2);
  const minutes = Math.round(size / 60e9);
  return minutes < 24 * 60 ? pair(minutes, 60, "h", "min", 2) : pair(Math.round(size / 3600e9), 24, "d", "h", 1);
}

/** A limit or the border of a class: without digits that say nothing. */
export function border(ns: number): string {
  const trim = (value: number, unit: string) => `${Number(value.toPrecision(4))}${NBSP}${unit}`;
  if (ns === 0) return "0";
  if (ns >= 59.95e9) return duration(ns);
  if (ns >= 1e9) return trim(ns / 1e9, "s");
  if (ns >= 1e6) return trim(ns / 1e6, "ms");
  return ns >= 1e3 ? trim(ns / 1e3, "µs") : trim(ns, "ns");
}

/** A share between 0 and 1. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value > 0 && value < 0.05 ? "<0.1" : value.toFixed(1)}${NBSP}%`;
}

/** Part of a whole as a share. */
export function share(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

/** A size in the binary unit that leaves one to four digits. */
export function bytes(size: number): string {
  let value = Math.trunc(size);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(value) < 1023.5) return `${number(value)}${NBSP}${unit}`;
    value /= 1024;
  }
  return `${number(value)}${NBSP}TiB`;
}

/** The unit for an energy: watt-hours from a tenth of one on. Of a list: that of its largest. */
export function energyUnit(joules: number): [number, string] {
  const size = Math.abs(joules);
  return size < 1 ? [1e-3, "mJ"] : size < 360 ? [1, "J"] : [3600, "Wh"];
}

/** Two digits, because no more are known. */
function estimate(value: number): string {
  const size = Math.abs(value);
  if (size < 100) return significant(value, 2);
  const step = 10 ** (Math.floor(Math.log10(size)) - 1);
  return significant(Math.sign(value) * Math.round(size / step) * step, 2);
}

/** An estimated energy, of which two digits are known. */
export function energy(joules: number, [factor, unit] = energyUnit(joules)): string {
  return `${estimate(joules / factor)}${NBSP}${unit}`;
}

/** A measured energy. */
export function measuredEnergy(joules: number): string {
  const [factor, unit] = energyUnit(joules);
  return `${number(joules / factor)}${NBSP}${unit}`;
}

/** The bounds of an estimated energy. */
export function energyRange(low: number, high: number, [factor, unit] = energyUnit(high)): string {
  return `${estimate(low / factor)}–${estimate(high / factor)}${NBSP}${unit}`;
}

/** What a key says to people: words apart, and without the unit, which follows the number. */
export function label(key: string): string {
  const bare = key.replace(/_(ns|us|ms|s|percent|bytes|kb|mb|mhz|joules|minutes|hours)$/, "");
  return (bare === "" ? key : bare).replaceAll("_", " ");
}
