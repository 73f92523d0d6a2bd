/** Disk transfers, as Utilization by Process, Path Name of WPA. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By process and file", table: "disk_io", group: ["upid", "file_id.path", "op"], values: [{ column: "service_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }, { column: "queue_ns", fn: "sum" }] },
  { name: "By file", table: "disk_io", group: ["file_id.path", "op", "upid"], values: [{ column: "service_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "By disk and operation", table: "disk_io", group: ["disk", "op", "upid"], values: [{ column: "service_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }, { column: "depth", fn: "avg" }] },
  { name: "By priority", table: "disk_io", group: ["priority", "upid", "op"], values: [{ column: "service_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "By caller", table: "disk_io", group: ["upid", "stack_id"], values: [{ column: "service_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "The longest", table: "disk_io", group: [], values: [], mode: "rows", order: [["dur_ns", true]] },
  { name: "Use of disks", table: "disk_cost", group: ["level", "disk", "upid"], values: [{ column: "service_ns", fn: "sum" }, { column: "busy_ns", fn: "sum" }, { column: "count", fn: "sum" }, { column: "read_bytes", fn: "sum" }, { column: "written_bytes", fn: "sum" }, { column: "p95_ns", fn: "max" }, { column: "max_ns", fn: "max" }, { column: "queue_mean", fn: "max" }] },
  { name: "Files of disks", table: "disk_file", group: ["path", "disk"], values: [{ column: "service_ns", fn: "sum" }, { column: "total_ns", fn: "sum" }, { column: "read_bytes", fn: "sum" }, { column: "written_bytes", fn: "sum" }, { column: "flushes", fn: "sum" }] },
];

export const panel: Panel = {
  id: "disk",
  title: "Disk",
  group: "io",
  order: 10,
  about: "Disk transfers by process, file, disk and priority",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  measures: "Times are those of transfers at the disk's driver. Most file operations never get there: what the cache answers, and time in filter drivers, is in Files and Filter drivers.",
  View: () => <Pivot id="disk" title="Disk" presets={PRESETS} />,
};
