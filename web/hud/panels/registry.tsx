/** Registry operations. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By process, operation, key", table: "registry", group: ["upid", "op", "key"], values: [{ fn: "count" }, { column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }] },
  { name: "By key", table: "registry", group: ["key", "value", "upid", "op"], values: [{ fn: "count" }, { column: "dur_ns", fn: "sum" }] },
  { name: "Failures", table: "registry", group: ["status_name", "op", "key", "upid"], values: [{ fn: "count" }, { column: "dur_ns", fn: "sum" }], where: [{ column: "status", op: "lt", value: 0 }] },
  { name: "Use of keys", table: "registry_usage", group: ["upid", "key", "op"], values: [{ column: "count", fn: "sum" }, { column: "failed", fn: "sum" }, { column: "total_ns", fn: "sum" }, { column: "repeats", fn: "sum" }, { column: "top_value_reads", fn: "max" }] },
  { name: "Callers", table: "registry_caller", group: ["upid", "caller", "op"], values: [{ column: "count", fn: "sum" }, { column: "failed", fn: "sum" }, { column: "total_ns", fn: "sum" }] },
  { name: "Stacks", table: "registry_stack", group: ["upid", "stack_id", "op"], values: [{ column: "count", fn: "sum" }, { column: "failed", fn: "sum" }, { column: "total_ns", fn: "sum" }] },
];

export const panel: Panel = {
  id: "registry",
  title: "Registry",
  group: "io",
  order: 30,
  about: "Registry operations by process, key and value",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  measures: "Times are those of the kernel's registry events. Callbacks of security products that run before or after are not in them; they show in the stacks and in System calls.",
  View: () => <Pivot id="registry" title="Registry" presets={PRESETS} />,
};
