/** Numbers as people read them; the same rules as in the terminal. */

const NBSP = "\u00a0";

function scaled(value: number): string {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

/** A span of time in the unit that leaves three to four digits. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  const sign = ns < 0 ? "-" : "";
  if (size < 1e3) return `${sign}${Number.isInteger(size) ? size : size.toPrecision(3)}${NBSP}ns`;
  if (size < 999_500) return `${sign}${scaled(size / 1e3)}${NBSP}µs`;
  if (size < 999_500_000) return `${sign}${scaled(size / 1e6)}${NBSP}ms`;
  if (size < 119.5e9) return `${sign}${scaled(size / 1e9)}${NBSP}s`;
  const seconds = Math.round(size / 1e9);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0
    ? `${sign}${hours}${NBSP}h ${minutes}${NBSP}min`
    : `${sign}${minutes}${NBSP}min ${seconds % 60}${NBSP}s`;
}

/** A limit or the border of a class: without digits that say nothing. */
export function border(ns: number): string {
  const trim = (value: number, unit: string) => `${Number(value.toPrecision(4))}${NBSP}${unit}`;
  if (ns === 0) return "0";
  if (ns >= 1e9) return trim(ns / 1e9, "s");
  if (ns >= 1e6) return trim(ns / 1e6, "ms");
  return ns >= 1e3 ? trim(ns / 1e3, "µs") : trim(ns, "ns");
}

/** A number with separators. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
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
  let value = Math.abs(size);
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${size < 0 ? "-" : ""}${unit === "B" ? value : value.toFixed(value < 99.95 ? 1 : 0)}${NBSP}${unit}`;
}

/** Energy. */
export function wattHours(wh: number): string {
  if (wh >= 0.9995) return `${Number(wh.toPrecision(3))}${NBSP}Wh`;
  return `${Number((wh * 1000).toPrecision(3))}${NBSP}mWh`;
}

/** Energy between two bounds, in the unit of the upper one. */
export function wattRange(low: number, high: number): string {
  const [unit, scale] = high >= 0.9995 ? ["Wh", 1] : ["mWh", 1000];
  const show = (wh: number) => Number((wh * scale).toPrecision(3));
  return `${show(low)}–${show(high)}${NBSP}${unit}`;
}

/** Three significant digits. */
export function number(value: number): string {
  return Math.abs(value) >= 1000 ? count(value) : String(Number(value.toPrecision(3)));
}

/** What a key says to people: words apart, and without the unit, which stands behind the number. */
export function label(key: string): string {
  const bare = key.replace(/_(ns|us|ms|s|percent|bytes|kb|mb|mhz|joules|minutes|hours)$/, "");
  return (bare === "" ? key : bare).replaceAll("_", " ");
}
