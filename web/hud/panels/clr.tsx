/** What the .NET runtime did. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Collections by process and generation", table: "clr_gc", group: ["upid", "generation", "reason"], values: [{ column: "pause_ns", fn: "sum" }, { column: "pause_ns", fn: "max" }, { column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "heap_bytes", fn: "max" }] },
  { name: "Collections", table: "clr_gc", group: [], values: [], mode: "rows", order: [["pause_ns", true]] },
  { name: "Exceptions", table: "clr_exception", group: ["upid", "exception_type", "message"], values: [{ fn: "count" }] },
  { name: "Exceptions by stack", table: "clr_exception", group: ["exception_type", "upid", "stack_id"], values: [{ fn: "count" }] },
  { name: "Compiled methods", table: "clr_jit", group: ["upid", "namespace", "name"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { column: "native_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "Contention", table: "clr_contention", group: ["upid", "utid", "native"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { fn: "count" }] },
  { name: "Methods", table: "clr_method", group: ["upid", "namespace"], values: [{ fn: "count" }, { column: "size_bytes", fn: "sum" }] },
];

export const panel: Panel = {
  id: "clr",
  title: ".NET",
  group: "cpu",
  order: 60,
  about: "Garbage collections, exceptions, compilation and contention of .NET programs",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="clr" title=".NET" presets={PRESETS} />,
};
