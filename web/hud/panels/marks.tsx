/** Marks, intervals, focus, and what grows. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Marks", table: "mark", group: [], values: [], mode: "rows" },
  { name: "Intervals by provider and name", table: "interval", group: ["provider", "name", "upid"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { column: "dur_ns", fn: "avg" }, { fn: "count" }] },
  { name: "The longest intervals", table: "interval", group: [], values: [], mode: "rows", order: [["dur_ns", true]] },
  { name: "Window in focus", table: "focus", group: ["upid", "kind"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }] },
  { name: "What grows with its number", table: "growth", group: ["verdict", "name"], values: [{ column: "excess_ns", fn: "max" }, { column: "total_ns", fn: "max" }, { column: "exponent", fn: "max" }, { column: "calls", fn: "max" }], mode: "rows" },
  { name: "Process starts", table: "process_start", group: ["parent", "name"], values: [{ fn: "count" }, { column: "startup_ns", fn: "sum" }, { column: "startup_ns", fn: "max" }, { column: "load_ns", fn: "sum" }] },
  { name: "Starts and ends in each second", table: "process_rate", group: ["parent", "name"], values: [{ column: "started", fn: "sum" }, { column: "ended", fn: "sum" }] },
];

export const panel: Panel = {
  id: "marks",
  title: "Marks and intervals",
  group: "tools",
  order: 5,
  about: "Marks of the recording; start and stop events as intervals; windows in focus",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="marks" title="Marks and intervals" presets={PRESETS} />,
};
