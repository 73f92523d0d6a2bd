/** One unit and one number of decimals for a column, so that its numbers can be compared and added: chosen by the largest of them. */

import { count } from "../../../src/lib/format.ts";
import { MOMENTS, plainScale, scaled, scaleOf, type Scale } from "../../base/units.ts";
import type { Cell, Column } from "../../wire/rows.ts";

/** Numbers of a column, which the grid writes. */
export interface Amounts {
  /** In the unit of the data; what is not a number keeps the column's text. */
  of: (row: number) => Cell | undefined;
  /** As in docs/reference/tables.md; `moment` for points in time. */
  unit: string;
  /** Columns with the same word here are parts of each other, and have the same unit. */
  with?: string;
  /** Chosen by somebody who knows more rows than those. */
  scale?: Scale | null;
  /** They are divided by this: `s`. */
  per?: string;
  /** Differences: what is more has a sign too. */
  signed?: boolean;
}

const size = (cell: Cell | undefined) => (typeof cell === "number" && Number.isFinite(cell) ? Math.abs(cell) : 0);

/** The scale of some values. */
export function scaleFor(unit: string, values: Iterable<Cell | undefined>, wanted: string | null = null): Scale | null {
  if (unit === "moment") return MOMENTS;
  let [largest, whole] = [0, true];
  for (const cell of values) {
    const one = size(cell);
    if (one > largest) largest = one;
    if (!Number.isInteger(one)) whole = false;
  }
  return scaleOf(unit, largest, wanted) ?? plainScale(largest, whole);
}

/** The unit of a column of an answer; null: its values are no amounts. */
export function unitOf(column: Column): string | null {
  if (!column.isNumber || ["address", "status", "pid", "tid", "cpu", "id"].includes(column.role)) return null;
  // Tables that hold estimates name the unit in the column alone.
  const named = /_(j|wh)\)?$/.exec(column.name)?.[1];
  return column.role === "time" ? "moment" : (named ?? column.unit);
}

/** The scales of columns, in their order. */
export function scalesOf(columns: { amounts?: Amounts }[], count: number): (Scale | null)[] {
  const shared = new Map<string, Amounts[]>();
  for (const { amounts } of columns) if (amounts?.with) shared.set(amounts.with, [...(shared.get(amounts.with) ?? []), amounts]);
  const values = function* (list: Amounts[]) {
    for (const one of list) for (let row = 0; row < count; row += 1) yield one.of(row);
  };
  const together = new Map([...shared].map(([word, list]) => [word, scaleFor(list[0]?.unit ?? "", values(list))]));
  return columns.map(({ amounts }) => {
    if (!amounts) return null;
    if (amounts.scale !== undefined) return amounts.scale;
    return amounts.with ? (together.get(amounts.with) ?? null) : scaleFor(amounts.unit, values([amounts]));
  });
}

/** What stands in the cells of columns with such scales; `text` has those that are no amounts. */
export const textsOf = (columns: { amounts?: Amounts }[], scales: (Scale | null)[], text: (row: number, column: number) => string) => (row: number, column: number): string => {
  const amounts = columns[column]?.amounts;
  const value = amounts?.of(row);
  return value === null ? "–" : typeof value === "number" ? written(value, scales[column] ?? null, amounts?.signed) : text(row, column);
};

/** Numbers of a list that is no table, in one unit, which follows each; the unit alone for its header. */
export function alike(unit: string, values: Iterable<Cell | undefined>): { unit: string; text: (value: number) => string; bare: (value: number) => string } {
  const scale = scaleFor(unit, values);
  const bare = (value: number) => written(value, scale);
  return { unit: scale?.unit ?? "", bare, text: (value) => `${bare(value)}${scale?.unit ? `\u00a0${scale.unit}` : ""}` };
}

/** A number of such a column; without a scale it is whole. */
export const written = (value: number, scale: Scale | null, signed = false) => `${signed && value > 0 ? "+" : ""}${scale ? scaled(value, scale) : count(value).replace("-", "−")}`;
