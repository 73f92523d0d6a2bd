/** Units and functions of the columns of values: one unit for each, chosen by its largest value or by somebody. */

import { unitsOf, type Scale } from "../../base/units.ts";
import { scaleFor, unitOf } from "../grid/amounts.ts";
import type { Rows } from "../../wire/rows.ts";
import type { Track } from "../timeline/catalog.ts";
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

/** A group as a line of the time axis: the sum of its first value, or how many rows it has. */
export function trackOf(shown: Shown, only: Condition[], name: string): Track {
  const sum = shown.values.find((value) => value.fn === "sum" && value.column)?.column;
  const where = [...shown.where, ...only].map(({ label: _, ...rest }) => ({ ...rest, value: rest.value ?? null }));
  return { id: `own ${shown.table} ${JSON.stringify(only.map((one) => one.value))}`, title: name, table: shown.table, where, ...(sum ? { sum } : {}) };
}
