/** The rows themselves: pages come from the server as they are scrolled to. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { later, pending } from "../../base/awaited.ts";
import type { Scale } from "../../base/units.ts";
import { show, visible } from "../../base/value.ts";
import { part } from "../../state/view.ts";
import { tick } from "../../state/live.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import type { Cell, Rows } from "../../wire/rows.ts";
import type { RowsFacts } from "../../wire/types.ts";
import { Bones } from "../bones.tsx";
import { Fault, Nothing } from "../box.tsx";
import type { Deed } from "../grid/foot.tsx";
import { scaleFor, unitOf, written } from "../grid/amounts.ts";
import { widthFor } from "../grid/widths.ts";
import { Grid } from "../grid.tsx";
import { fieldKey } from "../../state/event_fields.ts";
import { filterItems } from "./columns.ts";
import { headed, questions, resolve, title, type Settings, type Shown } from "./model.ts";

/** Fields of events that are columns of their own. */
const FIELDS = 10;

/** Fields of a row of events, as its text has them. */
function fieldsOf(rows: Rows, row: number): Record<string, unknown> {
  try {
    const found = JSON.parse(rows.text(row, "fields") || "{}") as unknown;
    return found !== null && typeof found === "object" && !Array.isArray(found) ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The fields that most of the first rows have. */
function commonFields(rows: Rows | null): string[] {
  if (!rows?.column("fields")) return [];
  const seen = new Map<string, number>();
  for (let row = 0; row < Math.min(rows.count, PAGE); row += 1) for (const name of Object.keys(fieldsOf(rows, row))) seen.set(name, (seen.get(name) ?? 0) + 1);
  return [...seen].sort((a, b) => b[1] - a[1]).slice(0, FIELDS).map(([name]) => name);
}

const PAGE = 200;
/** Browsers have no boxes higher than this many rows. */
const MOST = 600_000;

export function rowsBody(shown: Shown, kept: Settings, offset: number, limit: number) {
  return {
    ...part.value,
    rows: true,
    table: shown.table,
    where: questions(shown.where, kept.search, shown.table, shown.group),
    columns: shown.columns,
    sort: shown.order,
    offset,
    limit,
  };
}

export interface RowCell {
  rows: Rows;
  row: number;
  column: string;
  value: Cell;
  text: string;
  /** The field of an event, if the cell is one. */
  field?: string;
}

export function RowsView(props: {
  shown: Shown;
  kept: Settings;
  onOrder: (order: [string, boolean][]) => void;
  onFacts: (facts: RowsFacts) => void;
  filterBy: (column: string) => void;
  onMenu: (cell: RowCell, x: number, y: number) => void;
  onKey: (event: KeyboardEvent, cell: RowCell) => boolean;
  onActivate: ((cell: RowCell) => void) | undefined;
  deeds: (cells: RowCell[]) => Deed[];
}) {
  const { shown, kept } = props;
  const first = rowsBody(shown, kept, 0, PAGE);
  const key = JSON.stringify(first);
  const root = useAnswer(`rows ${key}`, (signal) => askRows("rows", first, signal), 30);
  const [pages, setPages] = useState<Map<number, Rows>>(new Map());
  const [sight, setSight] = useState<[number, number]>([0, 0]);
  const stamp = `${tick.value} ${key}`;
  const of = useRef(stamp);
  if (of.current !== stamp) {
    of.current = stamp;
    pages.clear();
  }
  useEffect(() => {
    if (root.value) props.onFacts(root.value.facts);
  }, [root.value]);
  useEffect(() => {
    const wanted: number[] = [];
    for (let page = Math.floor(sight[0] / PAGE); page <= Math.floor(Math.max(0, sight[1] - 1) / PAGE); page += 1) {
      if (page > 0 && !pages.has(page)) wanted.push(page);
    }
    if (wanted.length === 0) return;
    const abort = new AbortController();
    const ends = wanted.map(pending);
    const cancel = later(() => {
      for (const [at, page] of wanted.entries()) {
        askRows("rows", rowsBody(shown, kept, page * PAGE, PAGE), abort.signal).then(
          (rows) => {
            ends[at]?.();
            if (of.current === stamp) setPages((before) => new Map(before).set(page, rows));
          },
          () => ends[at]?.(),
        );
      }
    }, 60);
    return () => {
      cancel();
      abort.abort();
      for (const end of ends) end();
    };
  }, [stamp, sight[0], sight[1], pages]);
  const first0 = root.value;
  const scales = new Map<string, Scale | null>(
    shown.columns.map((name) => {
      const of = first0?.column(name);
      const unit = of && !first0?.column(`${name}.label`) ? unitOf(of) : null;
      return [name, of && unit !== null ? scaleFor(unit, of.values) : null];
    }),
  );
  const fields = useMemo(() => (shown.columns.includes("fields") ? commonFields(root.value) : []), [root.value]);
  // What fields hold stands in the place of their text, which stands last then.
  const apart = fields.length > 0;
  const places: { column?: string; field?: string }[] = [
    ...shown.columns.flatMap((column): { column?: string; field?: string }[] => (apart && column === "fields" ? fields.map((field) => ({ field })) : [{ column }])),
    ...(apart ? [{ column: "fields" }] : []),
  ];
  const cell = (row: number, at: number): RowCell | null => {
    const page = Math.floor(row / PAGE);
    const rows = page === 0 ? root.value : pages.get(page);
    const { column, field } = places[at] ?? {};
    if (rows && field !== undefined) {
      const found = fieldsOf(rows, row % PAGE)[field];
      // True and false are 1 and 0 for the server, as for SQL.
      const value: Cell = typeof found === "number" || typeof found === "string" ? found : typeof found === "boolean" ? Number(found) : found === undefined || found === null ? null : JSON.stringify(found);
      return { rows, row: row % PAGE, column: fieldKey(field), value, text: value === null ? "–" : visible(String(found === true || found === false ? found : value)), field };
    }
    if (!rows || column === undefined) return null;
    const value = rows.get(row % PAGE, column);
    const label = rows.get(row % PAGE, `${column}.label`);
    const info = rows.column(column);
    const scale = scales.get(column);
    if (scale && typeof value === "number") return { rows, row: row % PAGE, column, value, text: written(value, scale) };
    return { rows, row: row % PAGE, column, value, text: label !== null ? show(label, { name: "", unit: "", role: "" }) : info ? show(value, info) : "" };
  };
  // By the texts of the first rows.
  const widths = useMemo(() => places.map(({ column, field }, at) => widthFor(field ?? title(column ?? ""), Array.from({ length: Math.min(PAGE, root.value?.count ?? 0) }, (_, row) => cell(row, at)?.text ?? ""))), [root.value, fields]);
  if (root.error) return <Fault error={root.error} />;
  if (!root.value) return <Bones lines={8} />;
  const count = root.value.facts.rows;
  if (count === 0) return <Nothing why="No row is in this range and these filters." />;
  return (
    <>
      {count > MOST && <p class="about">The first {MOST.toLocaleString("en")} of {count.toLocaleString("en")} rows can be scrolled to: filter, or sort by what matters.</p>}
      <Grid
        label={`Rows of ${shown.table}`}
        columns={places.map(({ column, field }, at) => {
          if (field !== undefined) return { id: fieldKey(field), title: field, doc: `Field ${field} of the events`, sortable: true, width: widths[at] ?? "", items: filterItems(shown.table, [fieldKey(field)], props.filterBy) };
          if (column === undefined) return { id: "", title: "" };
          const info = resolve(shown.table, column);
          const known = root.value?.column(column);
          const label = root.value?.column(`${column}.label`);
          const number = Boolean(known?.isNumber) && !label;
          return { id: column, title: headed(title(column)), doc: info?.doc ?? "", number, sortable: true, unit: scales.get(column)?.unit ?? "", items: filterItems(shown.table, [column], props.filterBy), ...(number ? {} : { width: widths[at] ?? "" }) };
        })}
        count={Math.min(count, MOST)}
        text={(row, at) => cell(row, at)?.text ?? "…"}
        raw={(row, at) => {
          const found = cell(row, at);
          const scale = found ? scales.get(found.column) : null;
          if (!found || typeof found.value !== "number" || found.rows.get(found.row, `${found.column}.label`) !== null) return found?.text ?? null;
          return scale ? found.value / scale.factor : found.value;
        }}
        sort={shown.order[0] ? { id: shown.order[0][0], down: shown.order[0][1] } : null}
        onSort={(id) => props.onOrder([[id, shown.order[0]?.[0] === id ? !shown.order[0][1] : Boolean(root.value?.column(id)?.isNumber)]])}
        onRange={(from, to) => setSight([from, to])}
        onMenu={(row, at, x, y) => {
          const found = cell(row, at);
          if (found) props.onMenu(found, x, y);
        }}
        deeds={(list, at) => props.deeds(list.flatMap((row) => cell(row, at) ?? []))}
        onKey={(event, row, at) => {
          const found = cell(row, at);
          return found ? props.onKey(event, found) : false;
        }}
        onActivate={(row, at) => {
          const found = cell(row, at);
          if (!found) return;
          if (props.onActivate) props.onActivate(found);
          else {
            const box = document.activeElement?.getBoundingClientRect();
            props.onMenu(found, box?.left ?? 0, box?.bottom ?? 0);
          }
        }}
      />
    </>
  );
}
