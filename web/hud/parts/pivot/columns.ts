/** Units and functions of the columns of values: one unit for each, chosen by its largest value or by somebody. */

import { unitsOf, type Scale } from "../../base/units.ts";
import { scaleFor, unitOf } from "../grid/amounts.ts";
import type { Rows } from "../../wire/rows.ts";
import type { Deed } from "../grid/foot.tsx";
import { addTracks, type Track } from "../timeline/catalog.ts";
import type { Item } from "./menu.tsx";
import { canFilter } from "./column_filter.tsx";
import { FUNCTIONS, title, valueName, type Condition, type Settings, type Shown, type Value } from "./model.ts";

/** Filters that the menu of a column offers. */
export const filterItems = (tableName: string, keys: string[], filterBy: (column: string) => void): Item[] =>
  keys.filter((key) => canFilter(tableName, key)).map((key) => ({ text: keys.length > 1 ? `Filter by ${title(key)} …` : "Filter …", run: () => filterBy(key) }));

export function columnsOf(rows: Rows, shown: Shown, kept: Settings, change: (some: Partial<Settings>) => void, filterBy: (column: string) => void) {
  const scales = new Map<string, Scale | null>(
    shown.values.map((value) => {
      const id = valueName(value);
      const of = rows.column(id);
      return [id, of ? scaleFor(["count", "unique"].includes(value.fn) ? "count" : (unitOf(of) ?? "none"), of.values, kept.units?.[id] ?? null) : null];
    }),
  );
  /** What the menu of a column has. */
  const items = (value: Value, at: number): Item[] => {
    const id = valueName(value);
    const units = scales.get(id) ? unitsOf(rows.column(id)?.unit ?? "").filter((one) => one !== scales.get(id)?.unit) : [];
    const others = value.column ? FUNCTIONS.filter((fn) => fn !== value.fn) : [];
    return [
      ...(value.column ? filterItems(shown.table, [value.column], filterBy) : []),
      ...others.map((fn) => ({ text: `Aggregate: ${fn}`, run: () => change({ values: shown.values.map((one, i) => (i === at ? { ...one, fn } : one)) }) })),
      ...units.map((unit) => ({ text: `Unit: ${unit}`, run: () => change({ units: { ...kept.units, [id]: unit } }) })),
    ];
  };
  return { scales, items };
}

const NAMED = 3;

/** The condition that rows are one of several, of which each fulfils its own conditions: they differ in one value alone. */
export function oneOf(each: Condition[][]): Condition[] | null {
  const [first] = each;
  const last = first?.[first.length - 1];
  if (!first || !last) return null;
  const above = (of: Condition[]) => JSON.stringify(of.slice(0, -1).map(({ column, op, value }) => [column, op, value]));
  const values = [...new Map(each.map((of) => of[of.length - 1]).map((one) => [one?.value, one])).values()];
  if (each.some((of) => of.length !== first.length || above(of) !== above(first)) || values.some((one) => one?.op !== "eq" || one.column !== last.column)) return null;
  const names = values.map((one) => one?.label ?? String(one?.value));
  const label = names.length > NAMED ? `${names.slice(0, NAMED - 1).join(", ")} and ${names.length - NAMED + 1} more` : names.join(", ");
  return [...first.slice(0, -1), { column: last.column, op: "in", value: values.flatMap((one) => (one?.value === undefined ? [] : [one.value])), label }];
}

/** What can be done with several groups, or with rows by one of their values. */
export function deedsOf(each: Condition[][], narrow: (conditions: Condition[]) => void, tracks: Track[] | null): Deed[] {
  const only = oneOf(each);
  return [
    ...(only ? [{ text: "Filter to these", doc: `Only rows of this table whose ${title(only[only.length - 1]?.column ?? "")} is one of these`, run: () => narrow(only) }] : []),
    ...(tracks ? [{ text: "Add tracks", doc: "A line on the time axis for each of these", run: () => addTracks(tracks) }] : []),
  ];
}

/** A group as a line of the time axis: the sum of its first value, or how many rows it has. */
export function trackOf(shown: Shown, only: Condition[], name: string): Track {
  const sum = shown.values.find((value) => value.fn === "sum" && value.column)?.column;
  const where = [...shown.where, ...only].map(({ label: _, ...rest }) => ({ ...rest, value: rest.value ?? null }));
  return { id: `own ${shown.table} ${JSON.stringify(only.map((one) => one.value))}`, title: name, table: shown.table, where, ...(sum ? { sum } : {}) };
}
