/** Processes as a tree of parents, with their lives over the shown time, their processor time, user and command line. */

import { useMemo, useState } from "preact/hooks";
import type { Panel } from "../app/panel.ts";
import { markOf } from "../base/colors.ts";
import { counted, span, visible } from "../base/value.ts";
import { Box, copy, Fault, Sql } from "../parts/box.tsx";
import { GuardMark } from "../parts/guard_mark.tsx";
import { scalesOf, textsOf } from "../parts/grid/amounts.ts";
import { Grid, type GridColumn } from "../parts/grid.tsx";
import { Menu, type Item, type MenuAt } from "../parts/pivot/menu.tsx";
import { say } from "../parts/live.tsx";
import { Swatch } from "../parts/who.tsx";
import { painted } from "../state/palette.ts";
import { addFilter, look, part, set, setting, shown, table, view, whole, zoomTo, type Filter, type Range } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";
import type { Cell, Rows } from "../wire/rows.ts";

interface Settings {
  find: string;
  sort: { id: string; down: boolean };
  flat: boolean;
}
const FRESH: Settings = { find: "", sort: { id: "cpu", down: true }, flat: false };

const COLUMNS: GridColumn[] = [
  { id: "name", title: "Process", doc: "Name and process id, below the process that started it.", sortable: true, width: "minmax(240px, 2fr)" },
  { id: "life", title: "Life", doc: "From start to end, within the shown time; a thick edge: it started or ended within the trace.", width: "minmax(96px, 180px)" },
  { id: "cpu", title: "CPU", doc: "Processor time in the selected range, of the process and (closed) of those below it.", number: true, sortable: true, width: "96px" },
  { id: "threads", title: "Threads", doc: "Threads of which there are samples or switches.", number: true, sortable: true, width: "76px" },
  { id: "start", title: "Start", doc: "Start; – before the trace.", number: true, sortable: true, width: "110px" },
  { id: "dur", title: "Lived", doc: "How long it lived.", number: true, sortable: true, width: "90px" },
  { id: "command", title: "Command line", doc: "Command line, else path.", width: "minmax(320px, 3fr)" },
  { id: "category", title: "Category", doc: "From the knowledge base.", width: "110px" },
  { id: "exit", title: "Exit", doc: "Exit status.", width: "120px" },
  { id: "session", title: "Session", doc: "Terminal session.", number: true, width: "72px" },
  { id: "user", title: "User", doc: "SID of the user.", width: "260px" },
];

interface Node {
  upid: number;
  row: number;
  depth: number;
  children: Node[];
  own: number;
  total: number;
}

function forest(rows: Rows, cpu: Map<number, number>): Node[] {
  const nodes = new Map<number, Node>();
  for (let row = 0; row < rows.count; row += 1) {
    const upid = rows.num(row, "upid");
    const own = cpu.get(upid) ?? 0;
    nodes.set(upid, { upid, row, depth: 0, children: [], own, total: own });
  }
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(Number(rows.get(node.row, "parent_upid") ?? -1));
    // Damaged traces may have rings: whoever stands in one is nobody's child.
    const seen = new Set([node]);
    let above = parent;
    while (above && !seen.has(above)) {
      seen.add(above);
      above = nodes.get(Number(rows.get(above.row, "parent_upid") ?? -1));
    }
    if (parent && !above) parent.children.push(node);
    else roots.push(node);
  }
  const add = (node: Node): number => (node.total = node.children.reduce((sum, child) => sum + add(child), node.own));
  roots.forEach(add);
  return roots;
}

function Processes() {
  void painted.value;
  const kept = setting<Settings>("processes", FRESH);
  const [closed, setClosed] = useState<Set<number>>(new Set());
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const number = view.value.trace;
  const list = useAnswer(`processes ${number}`, (signal) => askRows("rows", { trace: number, table: "process", limit: 100_000 }, signal));
  const source = (table("sample")?.rows ?? 0) > 0 ? { table: "sample", upid: "upid", utid: "utid", time: "weight_ns" } : { table: "cswitch", upid: "new_upid", utid: "new_utid", time: "cpu_ns" };
  // DPCs and ISRs interrupt whoever runs: their time is nobody's.
  const own = source.table === "sample" ? [{ column: "in_dpc", op: "eq", value: false }, { column: "in_isr", op: "eq", value: false }] : [];
  const question = { ...part.value, where: own, table: source.table, group: [source.upid], values: [{ column: source.time, fn: "sum" }, { column: source.utid, fn: "unique" }], limit: 100_000 };
  const there = (table(source.table)?.rows ?? 0) > 0;
  const sums = useAnswer(there ? `process cpu ${JSON.stringify(question)}` : null, (signal) => askRows("pivot", question, signal), 30);
  const range: Range = shown.value;
  const { rows, lines, threads } = useMemo(() => {
    const cpu = new Map<number, number>();
    const threads = new Map<number, number>();
    const found = sums.value;
    for (let row = 0; found && row < found.count; row += 1) {
      const upid = found.get(row, source.upid);
      if (typeof upid !== "number") continue;
      cpu.set(upid, found.num(row, `sum(${source.time})`));
      threads.set(upid, found.num(row, `unique(${source.utid})`));
    }
    const rows = list.value;
    if (!rows) return { rows: null, lines: [] as Node[], threads };
    const text = kept.find.trim().toLowerCase();
    const value = (node: Node): number | string => {
      const { id } = kept.sort;
      if (id === "name") return rows.text(node.row, "name").toLowerCase();
      if (id === "start") return Number(rows.get(node.row, "start_ns") ?? -1);
      if (id === "dur") return rows.num(node.row, "dur_ns");
      if (id === "threads") return threads.get(node.upid) ?? 0;
      return kept.flat ? node.own : node.total;
    };
    const sort = (nodes: Node[]) => nodes.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" && typeof y === "string" ? x.localeCompare(y) : Number(x) - Number(y);
      return (kept.sort.down ? -order : order) || a.upid - b.upid;
    });
    const matches = (node: Node): boolean => ["name", "command_line", "path", "pid", "user_sid", "category", "services"].some((column) => rows.text(node.row, column).toLowerCase().includes(text));
    const lines: Node[] = [];
    const walk = (nodes: Node[], depth: number) => {
      for (const node of sort(nodes)) {
        node.depth = depth;
        const at = lines.length;
        lines.push(node);
        if (!closed.has(node.upid) || text) walk(node.children, depth + 1);
        // With a search, ancestors of what is found stay.
        if (text && lines.length === at + 1 && !matches(node)) lines.pop();
      }
    };
    const roots = forest(rows, cpu);
    if (kept.flat) {
      const all: Node[] = [];
      const collect = (nodes: Node[]) => nodes.forEach((node) => { all.push(node); collect(node.children); });
      collect(roots);
      lines.push(...sort(all.filter((node) => !text || matches(node))));
      lines.forEach((node) => (node.depth = 0));
    } else walk(roots, 0);
    return { rows, lines, threads };
  }, [list.value, sums.value, JSON.stringify(kept), closed]);
  if (list.error || sums.error) return <Fault error={list.error ?? sums.error} />;
  if (!rows) return <p class="about">Reading …</p>;
  // One unit for each column.
  const own_ = (node: Node) => (kept.flat || node.children.length === 0 || !closed.has(node.upid) ? node.own : node.total);
  const amounts: Record<string, { unit: string; cell: (node: Node) => Cell | undefined } | undefined> = {
    cpu: { unit: "ns", cell: (node) => (there ? own_(node) : null) },
    start: { unit: "moment", cell: (node) => rows.get(node.row, "start_ns") },
    dur: { unit: "ns", cell: (node) => rows.get(node.row, "dur_ns") },
  };
  const label = (node: Node) => `${visible(rows.text(node.row, "name"))} (${rows.text(node.row, "pid")})`;
  // What has no start or end in the trace was there before it, or stays.
  const life = (node: Node): Range => [Number(rows.get(node.row, "start_ns") ?? whole.value[0]), Number(rows.get(node.row, "end_ns") ?? whole.value[1])];
  const security = (node: Node) => ["antivirus", "edr", "dlp", "security"].includes(rows.text(node.row, "category"));
  const hasBelow = (node: Node) => !kept.flat && node.children.length > 0;
  const columns = COLUMNS.map((one) => {
    const of = amounts[one.id];
    return of ? { ...one, amounts: { unit: of.unit, of: (row: number) => (lines[row] ? of.cell(lines[row]) : undefined) } } : one;
  });
  const words = (row: number, at: number): string => {
    const node = lines[row];
    const id = COLUMNS[at]?.id;
    if (!node) return "";
    const cell = (name: string) => visible(rows.text(node.row, name));
    switch (id) {
      case "name": return `${label(node)}${cell("services") ? ` [${cell("services")}]` : ""}`;
      case "life": return span(life(node));
      case "threads": return threads.get(node.upid)?.toLocaleString("en") ?? "–";
      case "exit": return cell("exit_name") || (rows.get(node.row, "exit_status") === null ? "–" : cell("exit_status"));
      case "session": return cell("session_id") || "–";
      case "user": return cell("user_sid") || "–";
      case "category": return cell("category") || "–";
      default: return cell("command_line") || cell("path") || "–";
    }
  };
  const scales = scalesOf(columns, lines.length);
  const text = textsOf(columns, scales, words);
  const filter = (node: Node): Filter => ({ kind: "process", value: node.upid, label: label(node) });
  const items = (row: number, at: number): Item[] => {
    const node = lines[row];
    if (!node) return [];
    const [from, to] = life(node);
    return [
      { text: `Filter all panels by ${label(node)}`, key: "p", run: () => addFilter(filter(node)) },
      { text: `All panels without ${label(node)}`, run: () => addFilter({ ...filter(node), not: true }) },
      { text: "Select its life", run: () => look({ selection: [from, Math.max(to, from + 1)] }) },
      { text: "Zoom to its life", run: () => zoomTo([from, Math.max(to, from + 1)]) },
      { text: "Copy cell", key: "Ctrl+C", run: () => void copy(text(row, at), "cell") },
      { text: "Copy row", run: () => void copy(COLUMNS.map((_, c) => text(row, c)).join("\t"), "row") },
      { text: "Copy table", run: () => void copy([columns.map((one, at) => (scales[at]?.unit ? `${one.title} (${scales[at].unit})` : one.title)).join("\t"), ...lines.map((_, r) => COLUMNS.map((__, c) => text(r, c)).join("\t"))].join("\n"), "table") },
    ];
  };
  const change = (some: Partial<Settings>) => set<Settings>("processes", some);
  const toggle = (row: number) => {
    const node = lines[row];
    if (!node) return;
    const next = new Set(closed);
    if (!next.delete(node.upid)) next.add(node.upid);
    setClosed(next);
  };
  return (
    <Box title="Processes" fill tools={
      <>
        <input type="search" aria-label="Find a process" placeholder="Find" value={kept.find} data-part="find" onInput={(event) => change({ find: event.currentTarget.value })} />
        <button type="button" class="small" aria-pressed={!kept.flat} onClick={() => change({ flat: false })}>Tree</button>
        <button type="button" class="small" aria-pressed={kept.flat} onClick={() => change({ flat: true })}>List</button>
        <span class="muted">{counted(rows.count, "process", "processes")}</span>
        <Sql sql={[sums.value?.facts.sql, list.value?.facts.sql].filter((sql) => sql !== undefined)} />
      </>
    }>
      <Grid
        label="Processes"
        columns={columns}
        count={lines.length}
        text={text}
        draw={(row, at) => {
          const node = lines[row];
          if (!node) return null;
          if (at === 0) return <span data-knows={rows.text(node.row, "name")}><Swatch name={rows.text(node.row, "name")} /> <GuardMark is={security(node)} /> {text(row, 0)}</span>;
          if (at !== 1) return null;
          const [from, to] = life(node);
          const place = (ns: number) => Math.max(0, Math.min(100, (100 * (ns - range[0])) / (range[1] - range[0])));
          if (to < range[0] || from > range[1]) return <span class="life" aria-hidden="true" />;
          return <span class="life" aria-hidden="true"><span class={`${rows.get(node.row, "start_ns") === null ? "" : "started"} ${rows.get(node.row, "end_ns") === null ? "" : "ended"}`} style={{ left: `${place(from)}%`, width: `${Math.max(0, place(to) - place(from))}%`, backgroundColor: `var(${markOf(rows.text(node.row, "name"))})` }} /></span>;
        }}
        sort={kept.sort}
        onSort={(id) => change({ sort: { id, down: kept.sort.id === id ? !kept.sort.down : id !== "name" } })}
        tree={{ level: (row) => (lines[row]?.depth ?? 0) + 1, open: (row) => { const node = lines[row]; return node && hasBelow(node) ? !closed.has(node.upid) : null; }, toggle }}
        onMenu={(row, at, x, y) => setMenu({ x, y, items: items(row, at) })}
        onActivate={(row, at) => { const box = document.activeElement?.getBoundingClientRect(); setMenu({ x: box?.left ?? 0, y: box?.bottom ?? 0, items: items(row, at) }); }}
        onKey={(event, row) => {
          const node = lines[row];
          if (event.key !== "p" || event.ctrlKey || !node) return false;
          addFilter(filter(node));
          say(`All panels show ${label(node)}`);
          return true;
        }}
      />
      {menu && <Menu at={menu} label="What to do with this process" onClose={() => setMenu(null)} />}
    </Box>
  );
}

export const panel: Panel = {
  id: "processes",
  title: "Processes",
  group: "system",
  order: 5,
  about: "The tree of processes with their lives, processor time and command lines",
  tables: ["process"],
  View: Processes,
};
