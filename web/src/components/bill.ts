/** What each culprit cost: CPU of all kinds, waits of others, energy with its bounds. */

import type { BillRow } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { duration, number, percent, wattHours } from "../lib/format.ts";
import { segmented } from "./frame.ts";
import { dataTable, type Column } from "./table.ts";

const PARTS = [
  ["own_cpu_ns", "own threads", "part-own"],
  ["others_cpu_ns", "on others' threads", "part-others"],
  ["dpc_ns", "DPC", "part-dpc"],
  ["isr_ns", "ISR", "part-isr"],
] as const;
/** Kinds in the order in which people ask. */
const ORDER = ["product", "driver", "process", "category"];

const cpu = (row: BillRow) => PARTS.reduce((sum, [key]) => sum + (row[key] ?? 0), 0);
const time = (ns: number | null) => (ns === null ? "–" : duration(ns));

/** CPU time in parts, as a bar with its sum. */
function parts(row: BillRow, most: number): Child {
  const words = PARTS.filter(([key]) => row[key]).map(([key, name]) => `${name} ${duration(row[key] ?? 0)}`).join(", ");
  return h(
    "div",
    { class: "with-bar", title: words },
    h(
      "div",
      { class: "stack-bar", "aria-hidden": "true" },
      PARTS.map(([key, , colour]) => h("i", { class: colour, style: { width: `${(100 * (row[key] ?? 0)) / Math.max(1, most)}%` } })),
    ),
    h("span", {}, duration(cpu(row))),
    h("span", { class: "hidden-text" }, ` (${words})`),
  );
}

/** Energy with a whisker from its lower to its upper bound. */
function energy(row: BillRow, most: number): Child {
  const { energy_low_wh: low, energy_mid_wh: mid, energy_high_wh: high } = row;
  if (low === null || mid === null || high === null) return "–";
  const at = (wh: number) => `${(100 * wh) / Math.max(1e-12, most)}%`;
  return h(
    "div",
    { class: "with-bar" },
    h(
      "div",
      { class: "energy-bar", "aria-hidden": "true" },
      h("i", { class: "mid", style: { width: at(mid) } }),
      h("i", { class: "whisker", style: { left: at(low), width: at(Math.max(0, high - low)) } }),
    ),
    h("span", {}, wattHours(mid), h("small", { class: "line" }, `${wattHours(low)} to ${wattHours(high)}`)),
  );
}

function table(kind: string, rows: BillRow[]): HTMLElement {
  const most = Math.max(1, ...rows.map(cpu));
  const dearest = Math.max(0, ...rows.map((row) => row.energy_high_wh ?? 0));
  const columns: Column<BillRow>[] = [
    { title: kind, cell: (row) => row.culprit, key: (row) => row.culprit, head: true, name: true },
    { title: "CPU", cell: (row) => parts(row, most), key: cpu },
    { title: "of the machine", cell: (row) => (row.share === null ? "–" : percent(row.share)), key: (row) => row.share ?? 0 },
    { title: "core-hours", cell: (row) => (row.core_hours === null ? "–" : number(row.core_hours)), key: (row) => row.core_hours ?? 0 },
    { title: "made others wait", cell: (row) => time(row.wait_imposed_ns), key: (row) => row.wait_imposed_ns ?? 0 },
    { title: "delayed files", cell: (row) => time(row.file_delay_ns), key: (row) => row.file_delay_ns ?? 0 },
    { title: "energy", cell: (row) => energy(row, dearest), key: (row) => row.energy_mid_wh ?? 0 },
    { title: "confidence", cell: (row) => row.confidence ?? "–" },
  ];
  // A column without any figure says nothing.
  const used = columns.filter((column) => column.head || rows.some((row) => column.cell(row) !== "–"));
  return dataTable(rows, used, { caption: `The bill by ${kind}` });
}

/** The bill, one kind of culprit at a time; on paper all of them. */
export function bill(rows: BillRow[]): HTMLElement {
  const rank = (kind: string) => (ORDER.indexOf(kind) + ORDER.length + 1) % (ORDER.length + 1);
  const kinds = [...new Set(rows.map((row) => row.kind))].sort((a, b) => rank(a) - rank(b));
  const tables = kinds.map((kind, at) =>
    h("div", { class: "on-paper", hidden: at > 0 }, table(kind, rows.filter((row) => row.kind === kind))),
  );
  const choose = (kind: string) => tables.forEach((one, at) => (one.hidden = kinds[at] !== kind));
  return h(
    "div",
    {},
    kinds.length > 1 && segmented("Kind of culprit", kinds.map((kind) => ({ label: kind, value: kind })), kinds[0] ?? "", choose),
    tables,
    h("ul", { class: "legend" }, PARTS.map(([, name, colour]) => h("li", {}, h("i", { class: `swatch ${colour}` }), name))),
  );
}
