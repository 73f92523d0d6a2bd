/** Arrow rows as a grid, sorted in the page: for answers that are small. */

import { useMemo, useState } from "preact/hooks";
import { show } from "../base/value.ts";
import type { Rows } from "../wire/rows.ts";
import { scaleFor, unitOf } from "./grid/amounts.ts";
import { widthFor } from "./grid/widths.ts";
import { Grid } from "./grid.tsx";

/** Rows by whose texts columns are made wide. */
const MEASURED = 200;

export function RowsGrid(props: { label: string; rows: Rows; hide?: string[]; most?: number; onActivate?: (row: number) => void }) {
  const { rows } = props;
  const [sort, setSort] = useState<{ id: string; down: boolean } | null>(null);
  const columns = rows.columns.filter((column) => !props.hide?.includes(column.name));
  const scales = useMemo(() => columns.map((column) => scaleFor(unitOf(column) ?? "none", column.values)), [rows]);
  const widths = useMemo(() => columns.map((column) => widthFor(column.name, column.values.slice(0, MEASURED).map((cell) => show(cell, column)))), [rows]);
  const order = useMemo(() => {
    const order = Array.from({ length: rows.count }, (_, row) => row);
    const by = sort && rows.column(sort.id);
    if (by) {
      const sign = sort.down ? -1 : 1;
      order.sort((a, b) => {
        const [x, y] = [by.values[a] ?? null, by.values[b] ?? null];
        if (x === y) return a - b;
        // What is not known stands at the end, whichever way.
        if (x === null) return 1;
        if (y === null) return -1;
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      });
    }
    return order;
  }, [rows, sort]);
  return (
    <Grid
      label={props.label}
      columns={columns.map((column, at) => ({
        id: column.name, title: column.name, doc: column.doc, number: column.isNumber, sortable: true,
        ...(column.isNumber ? {} : { width: widths[at] ?? "" }),
        ...(unitOf(column) === null ? {} : { amounts: { unit: column.unit, scale: scales[at] ?? null, of: (row: number) => column.values[order[row] ?? -1] ?? null } }),
      }))}
      count={rows.count}
      text={(row, at) => {
        const column = columns[at];
        return column ? show(column.values[order[row] ?? -1] ?? null, column) : "";
      }}
      raw={(row, at) => columns[at]?.values[order[row] ?? -1] ?? null}
      sort={sort}
      onSort={(id) => setSort(sort?.id === id ? { id, down: !sort.down } : { id, down: rows.column(id)?.isNumber ?? false })}
      onActivate={(row) => props.onActivate?.(order[row] ?? -1)}
      {...(props.most ? { most: props.most } : {})}
    />
  );
}
