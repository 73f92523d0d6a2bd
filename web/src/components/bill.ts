/** What each culprit cost: CPU of all kinds, waits of others, energy with its bounds. */

import type { BillRow } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { duration, energy as energyText, energyRange, energyUnit, number, percent } from "../lib/format.ts";
import { segmented } from "./frame.ts";
import { dataTable, type Column } from "./table.ts";

const PARTS = [
  ["own_cpu_ns", "own threads", "part-own"],
  ["frames_cpu_ns", "on others' threads", "part-others"],
  ["dpc_ns", "DPC", "part-dpc"],
  ["isr_ns", "ISR", "part-isr"],
] as const;
/** Kinds in the order in which people ask. */
const ORDER = ["product", "driver", "process", "category"];

const nobody = (row: BillRow) => row.part !== "culprit";
const time = (ns: number | null) => (ns ? duration(ns) : ns === 0 ? "0" : "–");

/** CPU time in parts, as a bar with its sum. */
function parts(row: BillRow, most: number): Child {
  const words = PARTS.filter(([key]) => row[key] > 0).map(([key, name]) => `${name} ${duration(row[key])}`).join(", ");
  return h(
    "div",
    { class: "with-bar", title: words },
    h(
      "div",
      { class: "stack-bar", "aria-hidden": "true" },
      PARTS.map(([key, , colour]) => h("i", { class: colour, style: { width: `${(100 * row[key]) / Math.max(1, most)}%` } })),
    ),
    h("span", {}, duration(row.total_cpu_ns)),
    h("span", { class: "hidden-text" }, ` (${words})`),
  );
}

/** Energy with a whisker from its lower to its upper bound. */
function energy(row: BillRow, most: number): Child {
  const { energy_low_j: low, energy_j: mid, energy_high_j: high } = row;
  if (low === null || mid === null || high === null) return "–";
  // One unit for all rows.
  const unit = energyUnit(most);
  const at = (joules: number) => `${(100 * joules) / Math.max(1e-12, most)}%`;
  return h(
    "div",
    { class: "with-bar" },
    h(
      "div",
      { class: "energy-bar", "aria-hidden": "true" },
      h("i", { class: "mid", style: { width: at(mid) } }),
      h("i", { class: "whisker", style: { left: at(low), width: at(Math.max(0, high - low)) } }),
    ),
    h("span", {}, energyText(mid, unit), h("small", { class: "line" }, energyRange(low, high, unit))),
  );
}

function table(kind: string, rows: BillRow[]): HTMLElement {
  // Bars are as long as the costliest culprit; idle time would make all of them short.
  const most = Math.max(1, ...rows.filter((row) => !nobody(row)).map((row) => row.total_cpu_ns));
  const costliest = Math.max(0, ...rows.filter((row) => !nobody(row)).map((row) => row.energy_high_j ?? 0));
  const times: [string, keyof BillRow][] = [
    ["made others wait", "imposed_wait_ns"],
    ["filter callbacks", "filter_ns"],
    ["files", "file_ns"],
    ["registry", "registry_ns"],
    ["hard faults", "hard_fault_ns"],
  ];
  const columns: Column<BillRow>[] = [
    {
      title: kind,
      cell: (row) => [h("span", { class: nobody(row) ? "muted" : "" }, row.culprit), row.vendor && kind !== "process" && h("small", { class: "line muted" }, row.vendor)],
      key: (row) => row.culprit,
      head: true,
      name: true,
    },
    { title: "CPU", cell: (row) => (nobody(row) ? duration(row.total_cpu_ns) : parts(row, most)), key: (row) => row.total_cpu_ns },
    { title: "of the observed time", cell: (row) => (row.share_percent === null ? "–" : percent(row.share_percent / 100)), key: (row) => row.share_percent ?? 0 },
    { title: "core-hours", cell: (row) => (row.core_hours === null ? "–" : number(row.core_hours)), key: (row) => row.core_hours ?? 0 },
    ...times.map(([title, key]) => ({ title, cell: (row: BillRow) => time(row[key] as number | null), key: (row: BillRow) => Number(row[key] ?? 0) })),
    { title: "energy", cell: (row) => (nobody(row) ? "–" : energy(row, costliest)), key: (row) => row.energy_j ?? 0 },
    { title: "confidence", cell: (row) => (row.why ? h("span", { title: row.why }, row.confidence) : row.confidence || "–") },
  ];
  // A column without any figure says nothing.
  const used = columns.filter((column) => column.head || rows.some((row) => column.cell(row) !== "–"));
  return dataTable(rows, used, { caption: `The bill by ${kind}` });
}

/** The bill, one kind of culprit at a time; on paper all of them. */
export function bill(all: BillRow[]): HTMLElement {
  // What was not observed is no row of a partition.
  const rows = all.filter((row) => row.unobserved_ns === null);
  if (rows.length === 0) return h("p", { class: "empty" }, "Cannot tell: nothing was recorded that could be charged.");
  const missing = all.find((row) => row.unobserved_ns !== null);
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
    missing && h("p", { class: "muted" }, `${duration(missing.unobserved_ns ?? 0)} of processor time were not observed and are in no share: ${missing.why ?? "nothing was recorded"}.`),
    h("ul", { class: "legend" }, PARTS.map(([, name, colour]) => h("li", {}, h("i", { class: `swatch ${colour}` }), name))),
  );
}
