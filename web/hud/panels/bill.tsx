/** The bill: each nanosecond charged once. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Processes", table: "bill", group: ["culprit"], values: [{ column: "total_cpu_ns", fn: "sum" }, { column: "share_percent", fn: "sum" }, { column: "own_cpu_ns", fn: "sum" }, { column: "imposed_wait_ns", fn: "sum" }, { column: "file_ns", fn: "sum" }, { column: "registry_ns", fn: "sum" }, { column: "hard_fault_ns", fn: "sum" }, { column: "energy_j", fn: "sum" }], where: [{ column: "kind", op: "eq", value: "process" }] },
  { name: "Drivers", table: "bill", group: ["culprit"], values: [{ column: "total_cpu_ns", fn: "sum" }, { column: "share_percent", fn: "sum" }, { column: "frames_cpu_ns", fn: "sum" }, { column: "dpc_ns", fn: "sum" }, { column: "isr_ns", fn: "sum" }, { column: "filter_ns", fn: "sum" }, { column: "energy_j", fn: "sum" }], where: [{ column: "kind", op: "eq", value: "driver" }] },
  { name: "Products", table: "bill", group: ["culprit"], values: [{ column: "total_cpu_ns", fn: "sum" }, { column: "share_percent", fn: "sum" }, { column: "imposed_wait_ns", fn: "sum" }, { column: "energy_j", fn: "sum" }], where: [{ column: "kind", op: "eq", value: "product" }] },
  { name: "Categories", table: "bill", group: ["culprit"], values: [{ column: "total_cpu_ns", fn: "sum" }, { column: "share_percent", fn: "sum" }, { column: "imposed_wait_ns", fn: "sum" }, { column: "energy_j", fn: "sum" }], where: [{ column: "kind", op: "eq", value: "category" }] },
  { name: "By kind and culprit", table: "bill", group: ["kind", "culprit"], values: [{ column: "total_cpu_ns", fn: "sum" }, { column: "share_percent", fn: "sum" }, { column: "own_cpu_ns", fn: "sum" }, { column: "frames_cpu_ns", fn: "sum" }, { column: "dpc_ns", fn: "sum" }, { column: "isr_ns", fn: "sum" }, { column: "imposed_wait_ns", fn: "sum" }, { column: "energy_j", fn: "sum" }] },
  { name: "All of it", table: "bill", group: [], values: [], mode: "rows", order: [["total_cpu_ns", true]] },
];

export const panel: Panel = {
  id: "bill",
  title: "Bill",
  group: "system",
  order: 0,
  about: "What each process, driver, product and category cost: time, waiting, energy",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="bill" title="Bill" presets={PRESETS} />,
};
