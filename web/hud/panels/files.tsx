/** File operations as Activity by Process, Operation, Path of WPA. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By process, operation, path", table: "file_io", group: ["upid", "op", "path"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "size_bytes", fn: "sum" }, { column: "dur_ns", fn: "max" }] },
  { name: "By path", table: "file_io", group: ["path", "upid", "op"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "size_bytes", fn: "sum" }, { column: "dur_ns", fn: "max" }] },
  { name: "By extension", table: "file_io", group: ["file_id.extension", "upid", "op"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }, { column: "size_bytes", fn: "sum" }] },
  { name: "Failures", table: "file_io", group: ["status_name", "op", "upid", "path"], values: [{ fn: "count" }, { column: "dur_ns", fn: "sum" }], where: [{ column: "status", op: "lt", value: 0 }] },
  { name: "By caller", table: "file_io", group: ["upid", "op", "stack_id"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }] },
  { name: "The longest", table: "file_io", group: [], values: [], mode: "rows", order: [["dur_ns", true]] },
  { name: "Use of files", table: "file_usage", group: ["path", "upid"], values: [{ column: "total_ns", fn: "sum" }, { column: "open_ns", fn: "sum" }, { column: "opens", fn: "sum" }, { column: "failed_opens", fn: "sum" }, { column: "reads", fn: "sum" }, { column: "read_bytes", fn: "sum" }, { column: "writes", fn: "sum" }, { column: "written_bytes", fn: "sum" }] },
  { name: "Cost of opens", table: "file_open", group: [], values: [], mode: "rows", order: [["first_open_ns", true]] },
  { name: "All files", table: "file", group: ["extension", "path"], values: [{ fn: "count" }] },
];

export const panel: Panel = {
  id: "files",
  title: "Files",
  group: "io",
  order: 20,
  about: "File operations: by process, operation and path; opens; use of files",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  measures: "Times are those of the file system's events, from the start of an operation to its completion there. Filter drivers above it, such as a virus scanner, work before and after that: their time is not in these figures but in Filter drivers, in the stacks, and in the waits of the process.",
  View: () => <Pivot id="files" title="Files" presets={PRESETS} />,
};
