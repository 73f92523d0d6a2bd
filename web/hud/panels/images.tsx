/** Images, drivers and modules with their makers and their processor time. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Modules by processor time", table: "module_cost", group: ["module", "upid"], values: [{ column: "exclusive_ns", fn: "sum" }, { column: "inclusive_ns", fn: "sum" }, { column: "samples", fn: "sum" }] },
  { name: "Drivers by charged time", table: "driver_cost", group: ["driver", "upid", "class"], values: [{ column: "charged_ns", fn: "sum" }, { column: "exclusive_ns", fn: "sum" }, { column: "inclusive_ns", fn: "sum" }, { column: "samples", fn: "sum" }] },
  { name: "Drivers and modules, maker and category", table: "module", group: ["kind", "vendor", "name"], values: [{ column: "cpu_exclusive_ns", fn: "max" }, { column: "cpu_inclusive_ns", fn: "max" }, { column: "processes", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "Security products", table: "module", group: ["vendor", "product", "name"], values: [{ column: "cpu_exclusive_ns", fn: "max" }, { column: "cpu_inclusive_ns", fn: "max" }, { column: "processes", fn: "sum" }, { fn: "count" }], where: [{ column: "security", op: "eq", value: 1, label: "yes" }] },
  { name: "Images by process", table: "image", group: ["upid", "name"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "load_ns", fn: "min" }] },
  { name: "Drivers", table: "image", group: ["vendor", "name"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }], where: [{ column: "upid", op: "is_null" }], mode: "rows", columns: ["name", "vendor", "category", "product", "company", "file_version", "description", "size_bytes", "path"] },
  { name: "Functions", table: "function_cost", group: ["module", "function", "upid"], values: [{ column: "exclusive_ns", fn: "sum" }, { column: "inclusive_ns", fn: "sum" }, { column: "samples", fn: "sum" }] },
  { name: "API entered by", table: "api_cost", group: ["api", "upid"], values: [{ column: "cost_ns", fn: "sum" }, { column: "samples", fn: "sum" }] },
  { name: "Stack tags", table: "tag_cost", group: ["category", "tag", "owner"], values: [{ column: "exclusive_ns", fn: "sum" }, { column: "inclusive_ns", fn: "sum" }, { column: "samples", fn: "sum" }], where: [{ column: "level", op: "eq", value: "tag" }] },
];

export const panel: Panel = {
  id: "images",
  title: "Images and drivers",
  group: "system",
  order: 10,
  about: "What is loaded where, by whom it is made, and what it costs",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="images" title="Images and drivers" presets={PRESETS} />,
};
