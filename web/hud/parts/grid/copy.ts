/** Rows of a table as texts that other programs read: numbers are numbers there, in the unit that the header names. */

import type { Cell } from "../../wire/rows.ts";

export const FORMATS = ["TSV", "CSV", "JSON", "Markdown"] as const;
export type Format = (typeof FORMATS)[number];

export interface Sheet {
  titles: string[];
  rows: Cell[][];
}

const plain = (cell: Cell) => (cell === null ? "" : String(cell));
/** Programs that open such files take a text that begins like this for a formula. */
const tame = (cell: Cell) => (typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : plain(cell));

export function written(sheet: Sheet, format: Format): string {
  const { titles, rows } = sheet;
  switch (format) {
    case "TSV":
      return [titles, ...rows.map((row) => row.map(tame))].map((row) => row.map((cell) => cell.replace(/[\t\r\n]+/g, " ")).join("\t")).join("\n");
    case "CSV":
      return [titles, ...rows.map((row) => row.map(tame))].map((row) => row.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n");
    case "JSON":
      return JSON.stringify(
        rows.map((row) => Object.fromEntries(row.map((cell, at) => [titles[at] ?? String(at), cell]))),
        null,
        1,
      );
    default: {
      const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replace(/[\r\n]+/g, " ")).join(" | ")} |`;
      const ruler = rows[0]?.map((cell) => (typeof cell === "number" ? "---:" : "---")) ?? titles.map(() => "---");
      return [line(titles), line(ruler), ...rows.map((row) => line(row.map(plain)))].join("\n");
    }
  }
}
