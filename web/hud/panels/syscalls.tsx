/** System calls by function and process. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By function and process", table: "syscall", group: ["function", "upid"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }, { column: "dur_ns", fn: "avg" }, { column: "on_cpu_ns", fn: "sum" }, { column: "off_cpu_ns", fn: "sum" }] },
  { name: "By process and function", table: "syscall", group: ["upid", "function"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }, { column: "dur_ns", fn: "avg" }, { column: "on_cpu_ns", fn: "sum" }, { column: "off_cpu_ns", fn: "sum" }] },
  { name: "Failed, by status", table: "syscall", group: ["status_name", "function", "upid"], values: [{ fn: "count" }, { column: "dur_ns", fn: "sum" }], where: [{ column: "failed", op: "eq", value: 1, label: "yes" }] },
  { name: "By caller", table: "syscall", group: ["upid", "stack_id"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "The longest", table: "syscall", group: [], values: [], mode: "rows", order: [["dur_ns", true]] },
];

export const panel: Panel = {
  id: "syscalls",
  title: "System calls",
  group: "io",
  order: 40,
  about: "System calls: duration, time on and off the processor, failures",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="syscalls" title="System calls" presets={PRESETS} />,
};
