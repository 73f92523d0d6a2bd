/** Cells as people read them, by unit and role. */

import { bytes, count, duration, measuredEnergy, number } from "../../src/lib/format.ts";
import type { Cell } from "../wire/rows.ts";

export interface Meaning {
  name: string;
  unit: string;
  role: string;
}

/** How many of what: `1 row`, `2 rows`. */
export const counted = (size: number, one: string, many = `${one}s`): string => `${count(size)} ${size === 1 ? one : many}`;

/** A point in time: seconds since the start of the trace's clock, with as many digits as `step` needs. */
export function moment(ns: number, step = 1000): string {
  const digits = step >= 1e9 ? (step % 1e9 === 0 ? 0 : 1) : step >= 1e6 ? 3 : step >= 1e3 ? 6 : 9;
  return `${(ns / 1e9).toFixed(digits)}\u00a0s`;
}

/** A span of time beside an axis and columns of seconds: in seconds too, until the axis has minutes. */
export const lasting = (ns: number): string => (Math.abs(ns) < 59.95e9 || Math.abs(ns) > 200e9 ? duration(ns) : `${number(ns / 1e9)}\u00a0s`);

/** A span from one moment to another. */
export function span([from, to]: [number, number]): string {
  return `${moment(from, (to - from) / 100)} – ${moment(to, (to - from) / 100)}`;
}

export function show(cell: Cell, of: Meaning): string {
  if (cell === null) return "–";
  if (typeof cell === "string") return visible(cell);
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (of.role === "time") return moment(cell);
  switch (of.unit) {
    case "ns":
      return lasting(cell);
    case "bytes":
      return bytes(cell);
    case "percent":
      return `${number(cell)}\u00a0%`;
    case "micro_joules":
    case "uj":
      return measuredEnergy(cell / 1e6);
    default:
  }
  if (of.role === "address" || of.role === "status") return `0x${cell.toString(16)}`;
  if (of.role === "pid" || of.role === "tid" || of.role === "cpu" || of.role === "id") return String(cell);
  return Number.isInteger(cell) ? count(cell) : number(cell);
}

/** Amounts in a unit. */
export const amount = (value: number, unit: string) => show(value, { name: "", unit, role: "" });

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Control characters and direction marks of names become visible: a name must not look like another one. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
