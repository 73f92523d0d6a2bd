/** What can be done with a column: sort, what its panel offers, copy, hide. */

import type { Cell } from "../../wire/rows.ts";
import { copy } from "../box.tsx";
import type { Item } from "../pivot/menu.tsx";
import type { GridColumn } from "./column.ts";
import { FORMATS, written, type Sheet } from "./copy.ts";
import { counted } from "../../base/value.ts";

export interface Of {
  column: GridColumn;
  sort: { id: string; down: boolean } | null;
  onSort: ((id: string) => void) | undefined;
  /** It is the only one that is shown. */
  alone: boolean;
  hidden: string[];
  setHidden: (ids: string[]) => void;
  /** All rows. */
  sheet: () => Sheet;
  cells: () => Cell[][];
}

export function columnItems(of: Of): Item[] {
  const { column, sort, onSort, hidden } = of;
  const order = (down: boolean) => {
    const sorted = sort?.id === column.id;
    if (!sorted) onSort?.(column.id);
    // A first click sorts numbers largest first, and texts from A on.
    if (sorted ? sort?.down !== down : (column.number ?? false) !== down) onSort?.(column.id);
  };
  return [
    ...(column.sortable && onSort ? [{ text: "Sort largest first", run: () => order(true) }, { text: "Sort smallest first", run: () => order(false) }] : []),
    ...(column.items ?? []),
    { text: "Copy column", run: () => void copy(written({ titles: [column.title], rows: of.cells() }, "TSV"), "column") },
    ...FORMATS.map((format) => ({ text: `Copy table as ${format}`, run: () => void copy(written(of.sheet(), format), `table as ${format}`) })),
    ...(of.alone ? [] : [{ text: "Hide column", key: "h", run: () => of.setHidden([...hidden, column.id]) }]),
    ...(hidden.length > 0 ? [{ text: `Show ${counted(hidden.length, "hidden column")}`, run: () => of.setHidden([]) }] : []),
  ];
}
