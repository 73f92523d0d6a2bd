/**
 * A pivot table as in WPA: groups left of the bar, values right of it, both changed by chips; groups open into the next key; or the
 * rows themselves. All that is changed stands in the view's settings of the panel, so that links show it.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { percent } from "../../../src/lib/format.ts";
import { later } from "../../base/awaited.ts";
import { bind } from "../../base/keys.ts";
import { show } from "../../base/value.ts";
import { addFilter, look, scope, set, setting, table, whole, type Filter } from "../../state/view.ts";
import { save } from "../../wire/api.ts";
import type { RowsFacts } from "../../wire/types.ts";
import type { Cell } from "../../wire/rows.ts";
import { Bones } from "../bones.tsx";
import { Box, copy, Fault, Nothing, Sql, whyEmpty } from "../box.tsx";
import { alike, unitOf as unitOfColumn, written } from "../grid/amounts.ts";
import { Grid, type GridColumn } from "../grid.tsx";
import { say } from "../live.tsx";
import { Chips } from "./chips.tsx";
import { ColumnFilter } from "./column_filter.tsx";
import { fieldKey } from "../../state/event_fields.ts";
import { body, useLines, type Line } from "./data.ts";
import { addTrack } from "../timeline/catalog.ts";
import { Words } from "../words.tsx";
import { Swatch } from "../who.tsx";
import { Menu, type Item, type MenuAt } from "./menu.tsx";
import { conditionText, effective, FRESH, generic, headed, is, questions, resolve, target, title, valueName, valueTitle, type Condition, type Preset, type Settings, type Shown } from "./model.ts";
import { columnsOf, deedsOf, filterItems, trackOf } from "./columns.ts";
import { rowsBody, RowsView, type RowCell } from "./rows_view.tsx";
import { Spark, SparkTable, sparkText } from "./spark.tsx";

const FORMATS: [string, string][] = [["csv", "CSV"], ["parquet", "Parquet"], ["json", "JSON"], ["jsonl", "JSON lines"]];
/** Files hold no more. */
const MOST = 2_000_000;

/** The filter of all panels that a cell stands for. */
export function asFilter(tableName: string, key: string, value: Cell, label: string): Filter | null {
  if (value === null) return null;
  const column = resolve(tableName, key);
  if (!column) return null;
  const to = target(column);
  if (to === "process" || to === "thread") return { kind: to, value: Number(value), label };
  if (column.role === "cpu") return { kind: "cpu", value: Number(value), label: String(value) };
  const last = key.split(".").pop() ?? "";
  if (["module", "driver"].includes(last)) return { kind: "module", value: String(value), label };
  if (["leaf", "label", "function", "routine"].includes(last) && String(value).includes("!")) return { kind: "frame", value: String(value), label };
  return null;
}

/** The time that a row covers. */
export function rangeOf(cell: RowCell): [number, number] | null {
  const num = (name: string) => {
    const value = cell.rows.get(cell.row, name);
    return typeof value === "number" ? value : null;
  };
  const [start, end, dur] = [num("start_ns") ?? num("send_ns"), num("ts_ns"), num("dur_ns")];
  const from = start ?? end;
  if (from === null) return null;
  const to = start !== null && end !== null && end > start ? end : from + (dur ?? 0);
  return [from, Math.max(to, from + 1)];
}

export function Pivot(props: { id: string; title: string; presets: Preset[]; anyTable?: boolean; onRow?: (cell: RowCell) => void }) {
  const kept = setting<Settings>(props.id, FRESH);
  const change = (some: Partial<Settings>) => set<Settings>(props.id, some);
  const full = props.presets.filter((one) => (table(one.table)?.rows ?? 0) > 0);
  const preset = props.presets.find((one) => one.name === kept.preset) ?? full[0] ?? props.presets[0];
  if (!preset) return <Nothing why="There is no such table." />;
  return <Shown {...props} preset={preset} kept={kept} change={change} shown={effective(preset, kept)} />;
}

function Shown(props: {
  id: string;
  title: string;
  presets: Preset[];
  anyTable?: boolean;
  onRow?: (cell: RowCell) => void;
  preset: Preset;
  kept: Settings;
  change: (some: Partial<Settings>) => void;
  shown: Shown;
}) {
  const { kept, change, shown, preset } = props;
  const info = table(shown.table);
  const [draft, setDraft] = useState(kept.search);
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const [line, setLine] = useState<{ title: string; text: string } | null>(null);
  const [limit, setLimit] = useState(1000);
  const [filterBy, setFilterBy] = useState<string | null>(null);
  const [rowFacts, setRowFacts] = useState<RowsFacts | null>(null);
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => setDraft(kept.search), [kept.search]);
  useEffect(() => {
    if (draft === kept.search) return;
    return later(() => change({ search: draft }), 250);
  }, [draft]);
  const grouped = shown.mode === "groups" && shown.group.length > 0;
  useEffect(
    () =>
      bind("Tables", [
        { key: "/", about: "find in the table", run: () => search.current?.focus() },
        { key: "g", about: "groups or rows", run: () => change({ mode: grouped ? "rows" : "groups" }) },
      ]),
    [grouped],
  );
  useEffect(
    () =>
      bind("In a table", [
        { key: "f", about: "only rows with this value", run: () => undefined },
        { key: "x", about: "without rows of this value", run: () => undefined },
        { key: "p", about: "filter all panels by it", run: () => undefined },
        { key: "Ctrl+C", about: "copy the cell", run: () => undefined },
        { key: "Ctrl+Shift+C", about: "copy the row", run: () => undefined },
      ].map((key) => ({ ...key, key: `${key.key} ` }))),
    [],
  );

  const narrow = (conditions: Condition[]) => {
    change({ where: [...shown.where, ...conditions] });
    say(`Filtered: ${conditions.map(conditionText).join(", ")}`);
  };
  const out = (conditions: Condition[]) => narrow(conditions.slice(-1).map((one) => ({ ...one, not: !(one.not ?? false) })));
  const empty = whyEmpty([shown.table]);
  const fault = empty ? <Nothing why={empty.why} record={empty.record} /> : null;

  const file = (format: string) => {
    const question = grouped
      ? { ...body({ ...shown, group: [] }, kept, []), group: shown.group, where: questions(shown.where, kept.search, shown.table, shown.group), sort: [], limit: MOST, spark: 0 }
      : rowsBody(shown, kept, 0, MOST);
    save("table_file", { ...question, format }).then((name) => say(`${name}: saved`), (error: unknown) => say(error instanceof Error ? error.message : String(error)));
  };
  const cellItems = (conditions: Condition[], filter: Filter | null, text: string, row: string, more: Item[]): Item[] => [
    ...(filter ? [
      { text: `Filter all panels by ${filter.kind} ${filter.label}`, key: "p", run: () => addFilter(filter) },
      { text: `All panels without ${filter.kind} ${filter.label}`, run: () => addFilter({ ...filter, not: true }) },
    ] : []),
    ...(conditions.length > 0 ? [
      { text: `Only ${conditions.map(conditionText).join(", ")}`, key: "f", run: () => narrow(conditions) },
      { text: `Without ${conditions.slice(-1).map(conditionText).join("")}`, key: "x", run: () => out(conditions) },
    ] : []),
    ...more,
    { text: "Copy cell", key: "Ctrl+C", run: () => void copy(text, "cell") },
    { text: "Copy row", key: "Ctrl+Shift+C", run: () => void copy(row, "row") },
  ];
  const keyed = (event: KeyboardEvent, conditions: Condition[], filter: Filter | null, row: string): boolean => {
    if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "c") void copy(row, "row");
    else if (event.ctrlKey || event.altKey || event.metaKey) return false;
    else if (event.key === "f" && conditions.length > 0) narrow(conditions);
    else if (event.key === "x" && conditions.length > 0) out(conditions);
    else if (event.key === "p" && filter) addFilter(filter);
    else return false;
    return true;
  };
  const rowLine = (cell: RowCell) => shown.columns.map((column) => cell.rows.text(cell.row, column)).join("\t");
  const rowItems = (cell: RowCell): Item[] => {
    const range = rangeOf(cell);
    const select: Item[] = range ? [{ text: "Select its time in all panels", run: () => look({ selection: range }) }] : [];
    const bounds = typeof cell.value === "number" && cell.rows.get(cell.row, `${cell.column}.label`) === null
      ? (["ge", "le"] as const).map((op) => ({ text: `Only ${title(cell.column)} ${op === "ge" ? "≥" : "≤"} ${cell.text}`, run: () => narrow([{ column: cell.column, op, value: cell.value, label: cell.text }]) }))
      : [];
    if (cell.field) {
      const group: Item = { text: `Group by ${cell.field}`, run: () => change({ group: [fieldKey(cell.field ?? "")], values: [{ fn: "count" }], mode: "groups", sort: null }) };
      return cellItems([is(cell.column, cell.value, cell.text)], null, cell.text, rowLine(cell), [group, ...select]);
    }
    return cellItems([is(cell.column, cell.value, cell.text)], asFilter(shown.table, cell.column, cell.value, cell.text), cell.text, rowLine(cell), [...bounds, ...select]);
  };
  return (
    <Box
      title={props.title}
      fill
      tools={
        <>
          {(props.presets.length > 1 || props.anyTable) && (
            <label>
              <span class="hidden-text">Preset</span>
              <select data-part="preset" value={preset.name} onChange={(event) => change({ ...FRESH, preset: event.currentTarget.value, spark: kept.spark, share: kept.share })}>
                {props.presets.map((one) => <option key={one.name} value={one.name}>{one.name}{table(one.table)?.rows ? "" : one.table === "critical_path" ? " (walked on demand: Path, in CPU usage, precise)" : " (not in this trace)"}</option>)}
              </select>
            </label>
          )}
          <input ref={search} type="search" aria-label="Find in the table" placeholder="Find (/)" value={draft} data-part="find" onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Escape" && (draft ? setDraft("") : event.currentTarget.blur())} />
          <span class="segmented" role="group" aria-label="Groups or rows">
          <button type="button" aria-pressed={grouped} disabled={shown.group.length === 0} onClick={() => change({ mode: "groups" })}>Groups</button>
          <button type="button" aria-pressed={!grouped} onClick={() => change({ mode: "rows" })}>Rows</button>
          </span>
          {grouped && info?.columns.some((column) => column.role === "time") && <label class="tick"><input type="checkbox" checked={kept.spark} onChange={(event) => change({ spark: event.currentTarget.checked })} />over time</label>}
          {grouped && <label class="tick"><input type="checkbox" checked={kept.share} onChange={(event) => change({ share: event.currentTarget.checked })} />share</label>}
          <select aria-label="Save what is shown as a file" value="" data-part="file" onChange={(event) => { const format = event.currentTarget.value; event.currentTarget.value = ""; if (format) file(format); }}>
            <option value="">Save as …</option>
            {FORMATS.map(([format, name]) => <option key={format} value={format}>{name}</option>)}
          </select>
          <button type="button" class="small" onClick={() => change({ ...FRESH, preset: preset.name })} title="Back to the preset">Reset</button>
          {!grouped && <Sql sql={rowFacts?.sql} />}
        </>
      }
    >
      {grouped && <Chips shown={shown} onGroup={(group) => change({ group })} onValues={(values) => change({ values })} />}
      {shown.where.length > 0 && (
        <div class="conditions" role="group" aria-label="Filters of this table">
          {shown.where.map((one, at) => (
            <span class="crumb filter" key={JSON.stringify(one)}>
              {conditionText(one)}{" "}
              <button type="button" class="small" aria-label={`Drop ${conditionText(one)}`} onClick={() => change({ where: shown.where.filter((_, i) => i !== at) })}>✕</button>
            </span>
          ))}
        </div>
      )}
      {!grouped && rowFacts && <Unused facts={rowFacts} />}
      {fault ?? (grouped ? (
        <Groups {...props} limit={limit} onMore={() => setLimit(limit * 4)} onMenu={setMenu} onLine={setLine} filterBy={setFilterBy} narrow={narrow} items={cellItems} keyed={keyed} />
      ) : (
        <RowsView
          shown={shown}
          kept={kept}
          onOrder={(order) => change({ order })}
          onFacts={setRowFacts}
          filterBy={setFilterBy}
          onMenu={(cell, x, y) => setMenu({ x, y, items: rowItems(cell) })}
          onKey={(event, cell) => keyed(event, [is(cell.column, cell.value, cell.text)], asFilter(shown.table, cell.column, cell.value, cell.text), rowLine(cell))}
          onActivate={props.onRow}
          deeds={(cells) => deedsOf(cells.map((cell) => [is(cell.column, cell.value, cell.text)]), narrow, null)}
        />
      ))}
      {info && <p class="about foot"><Words text={info.title} /> <code class="name">{info.name}</code></p>}
      {filterBy !== null && (
        <ColumnFilter
          shown={shown}
          kept={kept}
          column={filterBy}
          onClose={() => setFilterBy(null)}
          onTake={(conditions) => {
            setFilterBy(null);
            narrow(conditions);
          }}
        />
      )}
      {menu && <Menu at={menu} label="What to do with this cell" onClose={() => setMenu(null)} />}
      {line && <SparkTable title={line.title} text={line.text} range={scope.value ?? whole.value} unit={unitOf(shown)} onClose={() => setLine(null)} />}
    </Box>
  );
}

const unitOf = (shown: Shown): string => {
  const first = shown.values[0];
  return first?.column && !["count", "unique"].includes(first.fn) ? (resolve(shown.table, first.column)?.unit ?? "") : "count";
};

function Unused(props: { facts: { unused: string[] } }) {
  const { unused } = props.facts;
  return unused.length > 0 ? <p class="about warn" role="note">Ignores {[...new Set(unused)].join(" and ")}: these sums have no column for it.</p> : null;
}

function Groups(props: {
  shown: Shown;
  kept: Settings;
  change: (some: Partial<Settings>) => void;
  limit: number;
  onMore: () => void;
  onMenu: (menu: MenuAt) => void;
  onLine: (line: { title: string; text: string }) => void;
  filterBy: (column: string) => void;
  narrow: (conditions: Condition[]) => void;
  items: (conditions: Condition[], filter: Filter | null, text: string, row: string, more: Item[]) => Item[];
  keyed: (event: KeyboardEvent, conditions: Condition[], filter: Filter | null, row: string) => boolean;
}) {
  const { shown, kept } = props;
  const { root, lines, toggle, all, error } = useLines(shown, kept, props.limit);
  if (error) return <Fault error={error} />;
  // The answer before this one may be of other keys.
  if (!root.value?.column(shown.group[0] ?? "")) return <Bones lines={8} />;
  const facts = root.value.facts;
  const totals = facts.totals as (number | null)[];
  const range = scope.value ?? whole.value;
  const unit = unitOf(shown);
  const shared = kept.share && shown.values[0] && ["sum", "count"].includes(shown.values[0].fn) && typeof totals[0] === "number" && totals[0] !== 0;
  const name = (line: Line): string => {
    const key = shown.group[line.depth] ?? "";
    const value = line.rows.get(line.row, key);
    const label = line.rows.get(line.row, `${key}.label`);
    if (label !== null && label !== "") return show(label, { name: "", unit: "", role: "" });
    const column = line.rows.column(key);
    if (value === null) return "(none)";
    return value === "" ? "(empty)" : column ? show(value, column) : String(value);
  };
  /** What stands there if it is a number that the grid can write. */
  const cellOf = (row: number, id: string) => {
    const cell = lines[row]?.rows.get(lines[row].row, id);
    return cell === null || typeof cell === "number" ? cell : undefined;
  };
  const { scales, items } = columnsOf(root.value, shown, kept, props.change, props.filterBy);
  const coloured = (key: string) => {
    const column = resolve(shown.table, key);
    return column !== null && (target(column) === "process" || ["module", "driver", "culprit", "image"].includes(key.split(".").pop() ?? ""));
  };
  const columns: (GridColumn & { kind: "key" | "share" | "spark" | "value"; at: number })[] = [
    { kind: "key", at: 0, id: "key", title: headed(shown.group.map(title).join(" › ")), doc: shown.group.map((key) => resolve(shown.table, key)?.doc ?? key).join("\n"), sortable: true, width: "minmax(260px, 2fr)", items: filterItems(shown.table, shown.group, props.filterBy) },
    ...(shared ? [{ kind: "share" as const, at: 0, id: "share", title: "%", doc: `Share of all: ${totals[0]?.toLocaleString("en")}`, number: true, width: "92px" }] : []),
    ...shown.values.map((value, at) => ({
      kind: "value" as const, at, id: valueName(value), title: headed(valueTitle(value)),
      doc: value.column ? (resolve(shown.table, value.column)?.doc ?? "") : "Rows.", number: true, sortable: true, width: "104px",
      unit: scales.get(valueName(value))?.unit ?? "",
      amounts: { unit: "", scale: scales.get(valueName(value)) ?? null, of: (row: number) => cellOf(row, valueName(value)) },
      items: items(value, at),
    })),
    ...(kept.spark && facts.spark ? [{ kind: "spark" as const, at: 0, id: "spark", title: "Over time", doc: `${shown.values[0] ? valueTitle(shown.values[0]) : "rows"} over the shown range`, width: "136px" }] : []),
  ];
  const share = (line: Line): number => {
    const value = shown.values[0] ? line.rows.get(line.row, valueName(shown.values[0])) : 0;
    return typeof value === "number" && totals[0] ? (100 * value) / totals[0] : 0;
  };
  const text = (row: number, at: number): string => {
    const [line, column] = [lines[row], columns[at]];
    if (!line || !column) return "";
    if (column.kind === "key") return name(line);
    if (column.kind === "share") return percent(share(line) / 100);
    if (column.kind === "spark") return sparkText(line.rows.text(line.row, "spark"), range, unit);
    const of = line.rows.column(column.id);
    const cell = line.rows.get(line.row, column.id);
    return typeof cell === "number" && column.kind === "value" ? written(cell, scales.get(column.id) ?? null) : of ? show(cell, of) : "";
  };
  const raw = (row: number, at: number): Cell => {
    const [line, column] = [lines[row], columns[at]];
    if (!line || !column || column.kind !== "value") return line && column?.kind === "share" ? share(line) : text(row, at);
    return line.rows.get(line.row, column.id);
  };
  // Lines of one level share a height, so that rows can be compared.
  let top = 0;
  if (kept.spark && facts.spark) {
    for (let row = 0; row < Math.min(200, root.value.count); row += 1) for (const part of root.value.text(row, "spark").split(" ")) if (part !== "-" && Number(part) > top) top = Number(part);
  }
  const conditions = (line: Line): Condition[] =>
    line.path.map((value, depth) => is(shown.group[depth] ?? "", value, line.names[depth] ?? name(line)));
  const filter = (line: Line) => asFilter(shown.table, shown.group[line.depth] ?? "", line.path[line.depth] ?? null, name(line));
  const whole_ = (row: number) => columns.map((_, at) => text(row, at)).join("\t");
  const menuAt = (row: number, at: number, x: number, y: number) => {
    const line = lines[row];
    if (!line) return;
    const more: Item[] = [
      ...(line.open !== null ? [{ text: line.open ? "Close" : "Open", key: line.open ? "←" : "→", run: () => toggle(line) }] : []),
      { text: "Show its rows", run: () => props.change({ where: [...shown.where, ...conditions(line)], mode: "rows" }) },
      ...(kept.spark && facts.spark ? [{ text: "Over time as a table", run: () => props.onLine({ title: `${name(line)} over time`, text: line.rows.text(line.row, "spark") }) }] : []),
      { text: "Copy table", run: () => void copy([columns.map((one) => (one.unit ? `${one.title} (${one.unit})` : one.title)).join("\t"), ...lines.map((_, at) => whole_(at))].join("\n"), "table") },
    ];
    props.onMenu({ x, y, items: props.items(conditions(line), filter(line), text(row, at), whole_(row), more) });
  };
  const groups = facts.groups;
  /** As in its column: seconds however many there are. */
  const total = (id: string, value: number) => {
    const of = root.value?.column(id);
    return alike(!of || /^(count|unique)\(/.test(id) ? "count" : (unitOfColumn(of) ?? "none"), [value]).text(value);
  };
  const info = table(shown.table);
  return (
    <>
      <div class="totals" data-part="totals">
        <strong>{groups.toLocaleString("en")}</strong> {groups === 1 ? "group" : "groups"} of <strong>{facts.rows.toLocaleString("en")}</strong> {facts.rows === 1 ? "row" : "rows"}
        {shown.values.map((value, at) => (value.fn === "count" && !value.column) || totals[at] === null || totals[at] === undefined ? null : (
          <span key={valueName(value)}>· {valueTitle(value)} {total(valueName(value), totals[at] ?? 0)}</span>
        ))}
        {shown.group.length > 1 && <button type="button" class="small" onClick={() => all(true)}>Open all</button>}
        {shown.group.length > 1 && <button type="button" class="small" onClick={() => all(false)}>Close all</button>}
        {groups > root.value.count && <button type="button" class="small" onClick={props.onMore}>Show more than {root.value.count.toLocaleString("en")}</button>}
        <Sql sql={facts.sql} />
      </div>
      <Unused facts={facts} />
      {root.value.count === 0 ? <Nothing why="No row is in this range and these filters." /> : (
        <Grid
          label={`${shown.table} by ${shown.group.map(title).join(", ")}`}
          columns={columns}
          count={lines.length}
          text={text}
          raw={raw}
          card={(row) => {
            const line = lines[row];
            if (!line) return null;
            const only = conditions(line);
            const by = filter(line);
            return {
              id: `${shown.table} ${JSON.stringify(line.path)}`,
              kind: headed(title(shown.group[line.depth] ?? "")),
              swatch: name(line),
              title: name(line),
              knows: name(line),
              facts: columns.flatMap((column, at): [string, string][] => (column.kind === "value" || column.kind === "share" ? [[column.kind === "share" ? "Share" : column.title, `${text(row, at)}${column.unit ? `\u00a0${column.unit}` : ""}`]] : [])),
              parts: [
                ...(kept.spark && facts.spark ? [{ title: "Over time", aside: text(row, columns.findIndex((one) => one.kind === "spark")), body: <Spark text={line.rows.text(line.row, "spark")} top={0} /> }] : []),
                ...(line.depth > 0 ? [{ title: "Under", body: <p>{line.names.slice(0, -1).join(" › ")}</p> }] : []),
              ],
              actions: [
                ...(by ? [{ text: "Filter", primary: true, run: () => addFilter(by) }, { text: "Exclude", run: () => addFilter({ ...by, not: true }) }] : []),
                { text: "Show its rows", run: () => props.change({ where: [...shown.where, ...only], mode: "rows" }) },
                ...(by && ["process", "thread", "module", "frame"].includes(by.kind) ? [{ text: "Open stacks", run: () => { addFilter(by); look({ panel: "stacks" }); } }] : []),
                ...(info?.columns.some((column) => column.role === "time") ? [{ text: "Add track", run: () => addTrack(trackOf(shown, only, name(line))) }] : []),
                { text: "SQL", run: () => { set("sql", { text: facts.sql }); look({ panel: "sql" }); } },
              ],
            };
          }}
          draw={(row, at) => {
            const [line, column] = [lines[row], columns[at]];
            if (!line || !column) return null;
            if (column.kind === "share") return <span class="share"><span class="fill" style={{ width: `${Math.max(0, Math.min(100, share(line)))}%` }} /><span>{percent(share(line) / 100)}</span></span>;
            if (column.kind === "spark") return <><Spark text={line.rows.text(line.row, "spark")} top={line.depth === 0 ? top : 0} /><span class="hidden-text">{text(row, at)}</span></>;
            if (column.kind === "key") return <>{coloured(shown.group[line.depth] ?? "") && <Swatch name={name(line)} />}<span data-knows={name(line)}>{name(line)}</span></>;
            return null;
          }}
          sort={kept.sort ?? (shown.values[0] ? { id: valueName(shown.values[0]), down: true } : null)}
          onSort={(id) => {
            const now = kept.sort ?? { id: shown.values[0] ? valueName(shown.values[0]) : "", down: true };
            props.change({ sort: now.id === id ? { id, down: !now.down } : { id, down: id !== "key" } });
          }}
          tree={{ level: (row) => (lines[row]?.depth ?? 0) + 1, open: (row) => lines[row]?.open ?? null, toggle: (row) => { const line = lines[row]; if (line) toggle(line); } }}
          onMenu={menuAt}
          deeds={(rows) => {
            const list = rows.flatMap((row) => lines[row] ?? []);
            const timed = info?.columns.some((column) => column.role === "time");
            return deedsOf(list.map(conditions), props.narrow, timed ? list.map((line) => trackOf(shown, conditions(line), name(line))) : null);
          }}
          onActivate={(row, at) => {
            const box = document.activeElement?.getBoundingClientRect();
            menuAt(row, at, box?.left ?? 0, box?.bottom ?? 0);
          }}
          onKey={(event, row) => {
            const line = lines[row];
            if (!line) return false;
            if ((event.key === "+" || event.key === "-") && line.open !== null && line.open === (event.key === "-")) {
              toggle(line);
              return true;
            }
            return props.keyed(event, conditions(line), filter(line), whole_(row));
          }}
        />
      )}
    </>
  );
}

/** A pivot table of any table, chosen from a list. */
export function AnyTable(props: { id: string; tables: string[] }) {
  const presets = props.tables.map((name) => table(name)).filter((one) => one !== undefined).map((one) => generic(one));
  return <Pivot id={props.id} title="Tables" presets={presets} anyTable />;
}
