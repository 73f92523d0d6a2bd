/** The machine, the trace, and how good it is. */

import type { LedgerLine, Quality } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { bytes, count, duration } from "../lib/format.ts";
import { dataTable } from "./table.ts";

/** Facts in a row. */
export function facts(quality: Quality): HTMLElement {
  const lost = quality.events_lost + quality.buffers_lost;
  // What the headers do not count, reading may have noticed.
  const noticed = quality.ledger.some((line) => line.severity === "data_loss" || line.severity === "error");
  const losses = lost > 0 ? `${count(quality.events_lost)} events, ${count(quality.buffers_lost)} buffers` : noticed ? "see quality of the trace" : "nothing";
  const list: [string, Child, boolean?][] = [
    [quality.files.length === 1 ? "trace" : "traces", quality.files.map((file) => h("span", { class: "name line" }, file))],
    ["Windows", quality.os],
    ["machine", `${quality.cpus} processors${quality.memory_bytes === null ? "" : `, ${bytes(quality.memory_bytes)}`}`],
    ["recorded", `${duration(quality.duration_ns)}, ${quality.start_utc.replace(/\.\d+$/, "")} UTC`],
    ["events", `${count(quality.events)} of ${count(quality.event_types)} kinds${quality.undecoded_types > 0 ? ` (${count(quality.undecoded_types)} undecoded)` : ""}`],
    ["lost", losses, lost > 0 || noticed],
  ];
  if (quality.stacks_percent !== null && quality.named_percent !== null) {
    list.push(["CPU samples", `${quality.stacks_percent.toFixed(0)} % with stack, ${quality.named_percent.toFixed(0)} % with function`]);
  }
  return h("dl", { class: "facts" }, list.map(([name, text, bad]) => h("div", { class: bad ? "bad" : "" }, h("dt", {}, name), h("dd", {}, text))));
}

/** What reading the trace counted. */
export function ledger(lines: LedgerLine[]): HTMLElement {
  return dataTable(
    lines,
    [
      { title: "severity", cell: (line) => line.severity.replace("_", " ") },
      { title: "count", cell: (line) => count(line.count), key: (line) => line.count },
      { title: "name", cell: (line) => line.name, key: (line) => line.name, head: true, name: true },
      { title: "what it means", cell: (line) => line.meaning },
    ],
    { caption: "What reading the trace counted" },
  );
}
