/** Callbacks of file system filters, by driver. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By filter, operation, process", table: "minifilter", group: ["module", "major", "upid"], values: [{ column: "dur_ns", fn: "sum" }, { column: "exclusive_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }, { column: "dur_ns", fn: "avg" }] },
  { name: "By filter and file", table: "minifilter", group: ["module", "path"], values: [{ column: "dur_ns", fn: "sum" }, { column: "exclusive_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "By process", table: "minifilter", group: ["upid", "module", "major"], values: [{ column: "dur_ns", fn: "sum" }, { column: "exclusive_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "Cost of filters", table: "minifilter_cost", group: ["module", "major", "phase"], values: [{ column: "total_ns", fn: "sum" }, { column: "exclusive_ns", fn: "sum" }, { column: "count", fn: "sum" }, { column: "failures", fn: "sum" }, { column: "p99_ns", fn: "max" }, { column: "max_ns", fn: "max" }] },
  { name: "The longest", table: "minifilter", group: [], values: [], mode: "rows", order: [["dur_ns", true]] },
];

export const panel: Panel = {
  id: "minifilter",
  title: "Minifilters",
  group: "io",
  order: 50,
  about: "Callbacks of file system filters: who delays which operation",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  measures: "Times are those of the callbacks of file system filters, before and after the file system's own work. The duration of a callback may contain callbacks of filters below it, its exclusive time does not; the file system's own time is in Files.",
  View: () => <Pivot id="minifilter" title="Minifilters" presets={PRESETS} />,
};
