/** Arrow rows as a grid, sorted in the page: for answers that are small. */

import { useMemo, useState } from "preact/hooks";
import { scaled, scaleOf } from "../base/units.ts";
import { show } from "../base/value.ts";
import type { Rows } from "../wire/rows.ts";
import { Grid } from "./grid.tsx";

export function RowsGrid(props: { label: string; rows: Rows; hide?: string[]; most?: number; onActivate?: (row: number) => void }) {
  const { rows } = props;
  const [sort, setSort] = useState<{ id: string; down: boolean } | null>(null);
  const columns = rows.columns.filter((column) => !props.hide?.includes(column.name));
  const scales = useMemo(
    () =>
      columns.map((column) => {
        if (!column.isNumber || column.role === "time") return null;
        return scaleOf(column.unit, column.values.reduce((most: number, cell) => (typeof cell === "number" && Math.abs(cell) > most ? Math.abs(cell) : most), 0));
      }),
    [rows],
  );
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
      columns={columns.map((column, at) => ({ id: column.name, title: column.name, doc: column.doc, number: column.isNumber, sortable: true, ...(scales[at] ? { unit: scales[at]?.unit ?? "" } : {}) }))}
      count={rows.count}
      text={(row, at) => {
        const column = columns[at];
        const cell = column?.values[order[row] ?? -1] ?? null;
        const scale = scales[at];
        return scale && typeof cell === "number" ? scaled(cell, scale) : column ? show(cell, column) : "";
      }}
      raw={(row, at) => {
        const cell = columns[at]?.values[order[row] ?? -1] ?? null;
        const scale = scales[at];
        return scale && typeof cell === "number" ? cell / scale.factor : cell;
      }}
      sort={sort}
      onSort={(id) => setSort(sort?.id === id ? { id, down: !sort.down } : { id, down: rows.column(id)?.isNumber ?? false })}
      onActivate={(row) => props.onActivate?.(order[row] ?? -1)}
      {...(props.most ? { most: props.most } : {})}
    />
  );
}
