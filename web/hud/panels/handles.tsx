/** Handles, open and leaked. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Growing: kernel handles", table: "handle_leak", group: ["upid", "object_type"], values: [{ column: "outstanding", fn: "sum" }, { column: "creates", fn: "sum" }, { column: "closes", fn: "sum" }, { column: "peak", fn: "sum" }, { column: "leak_slope_per_second", fn: "max" }, { column: "leak_r2", fn: "max" }] },
  { name: "Kernel handles by process and type", table: "handle", group: ["upid", "object_type", "name"], values: [{ fn: "count" }, { column: "dur_ns", fn: "avg" }] },
  { name: "Open at the end", table: "handle", group: ["upid", "object_type", "stack_id"], values: [{ fn: "count" }], where: [{ column: "closed_by", op: "is_null" }] },
  { name: "Growing: GDI and USER", table: "gdi_user_leak", group: ["upid", "kind", "object_type"], values: [{ column: "outstanding", fn: "sum" }, { column: "creates", fn: "sum" }, { column: "closes", fn: "sum" }, { column: "peak", fn: "sum" }, { column: "leak_slope_per_second", fn: "max" }] },
  { name: "GDI and USER by process and type", table: "gdi_user_handle", group: ["upid", "kind", "object_type", "stack_id"], values: [{ fn: "count" }, { column: "dur_ns", fn: "avg" }] },
];

export const panel: Panel = {
  id: "handles",
  title: "Handles",
  group: "memory",
  order: 10,
  about: "Kernel, GDI and USER handles, and those that nobody closes",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="handles" title="Handles" presets={PRESETS} />,
};
