/** What is shown, as a file or a text. */

import type { Rows } from "../../wire/rows.ts";
import { say } from "../live.tsx";
import type { Nodes } from "./model.ts";

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say(`${name} saved`);
}

const folded = (text: string) => text.replace(/[;\r\n]/g, " ");

/** Folded stacks (https://github.com/brendangregg/FlameGraph): one line per stack; what was too small stands as others, so that sums hold. */
export function saveFolded(nodes: Nodes, name: string): void {
  const lines: string[] = [];
  for (let at = 0; at < nodes.count; at += 1) {
    const path = nodes.path(at).map(folded);
    const own = nodes.own[at] ?? 0;
    const left = nodes.num(at, "left_weight");
    const stack = path.length > 0 ? path : ["[all]"];
    if (own > 0) lines.push(`${stack.join(";")} ${own}`);
    if (left > 0) lines.push(`${[...stack, `[${nodes.num(at, "left_out")} others]`].join(";")} ${left}`);
  }
  download(`${name}.folded.txt`, `${lines.join("\n")}\n`);
}

const cell = (value: unknown): string => {
  let text = value === null ? "" : String(value);
  // A spreadsheet must not take a name for a formula.
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};

/** Rows as CSV. */
export function saveCsv(rows: Rows, name: string): void {
  const lines = [rows.columns.map((column) => cell(column.name)).join(",")];
  for (let row = 0; row < rows.count; row += 1) lines.push(rows.columns.map((column) => cell(column.values[row] ?? null)).join(","));
  download(`${name}.csv`, `${lines.join("\r\n")}\r\n`);
}

/** The nodes below one as text, indented. */
export function treeText(nodes: Nodes, from: number, amount: (value: number) => string): string {
  const lines: string[] = [];
  const first = nodes.depth[from] ?? 0;
  for (let at = from; at < nodes.count && (at === from || (nodes.depth[at] ?? 0) > first); at += 1) {
    lines.push(`${"  ".repeat((nodes.depth[at] ?? 0) - first)}${nodes.label[at] ?? ""}  ${amount(nodes.total[at] ?? 0)} (own ${amount(nodes.own[at] ?? 0)})`);
  }
  return lines.join("\n");
}
