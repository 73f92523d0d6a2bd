/** Memory: who takes it, who keeps it, who waits for it. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Commit that stays", table: "memory_outstanding", group: ["upid", "stack_id"], values: [{ column: "outstanding_bytes", fn: "sum" }, { column: "committed_bytes", fn: "sum" }, { column: "freed_bytes", fn: "sum" }, { column: "outstanding_count", fn: "sum" }] },
  { name: "VirtualAlloc by process and stack", table: "virtual_alloc", group: ["upid", "op", "stack_id"], values: [{ column: "committed_bytes", fn: "sum" }, { column: "outstanding_bytes", fn: "sum" }, { column: "freed_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "Leaks of commit", table: "commit_leak", group: ["upid", "function"], values: [{ column: "outstanding_bytes", fn: "sum" }, { column: "outstanding_count", fn: "sum" }, { column: "total_bytes", fn: "sum" }, { column: "allocs", fn: "sum" }, { column: "quarter1_bytes", fn: "sum" }, { column: "quarter4_bytes", fn: "sum" }] },
  { name: "Hard faults by process and file", table: "hard_fault", group: ["upid", "file_id.path"], values: [{ column: "dur_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "max" }] },
  { name: "Hard faults: cost", table: "hard_fault_cost", group: ["upid", "path"], values: [{ column: "total_ns", fn: "sum" }, { column: "size_bytes", fn: "sum" }, { column: "count", fn: "sum" }, { column: "max_ns", fn: "max" }] },
  { name: "Page faults by process and kind", table: "page_fault", group: ["upid", "kind", "routine"], values: [{ fn: "count" }, { column: "size_bytes", fn: "sum" }] },
  { name: "Page faults by function", table: "page_fault_site", group: ["upid", "kind", "function"], values: [{ column: "count", fn: "sum" }, { column: "size_bytes", fn: "sum" }] },
  { name: "Page faults by stack", table: "page_fault_cost", group: ["upid", "kind", "stack_id"], values: [{ column: "count", fn: "sum" }, { column: "size_bytes", fn: "sum" }] },
  { name: "Heap by process and stack", table: "heap", group: ["upid", "stack_id"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "avg" }] },
  { name: "Heap that stays", table: "heap", group: ["upid", "stack_id"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }], where: [{ column: "freed_ns", op: "is_null" }] },
  { name: "Pool by tag", table: "pool", group: ["tag", "pool", "upid"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }, { column: "dur_ns", fn: "avg" }] },
  { name: "Pool that stays", table: "pool_leak", group: ["tag", "pool", "driver"], values: [{ column: "outstanding_bytes", fn: "sum" }, { column: "outstanding_count", fn: "sum" }, { column: "total_bytes", fn: "sum" }, { column: "allocs", fn: "sum" }] },
  { name: "Pool tags", table: "pool_tag", group: ["tag", "pool"], values: [{ column: "outstanding_bytes", fn: "sum" }, { column: "total_bytes", fn: "sum" }, { column: "allocs", fn: "sum" }, { column: "frees", fn: "sum" }, { column: "peak_bytes", fn: "max" }] },
  { name: "Pool from maker to freer", table: "pool_flow", group: ["tag", "function", "upid", "freed_by"], values: [{ column: "size_bytes", fn: "sum" }, { column: "count", fn: "sum" }] },
  { name: "Working sets", table: "process_memory", group: ["upid"], values: [{ column: "working_set_bytes", fn: "max" }, { column: "private_working_set_bytes", fn: "max" }, { column: "commit_bytes", fn: "max" }, { column: "peak_commit_bytes", fn: "max" }, { column: "handles", fn: "max" }, { fn: "count" }] },
  { name: "Counters of the machine", table: "memory_counter", group: [], values: [], mode: "rows" },
];

export const panel: Panel = {
  id: "memory",
  title: "Memory",
  group: "memory",
  order: 0,
  about: "VirtualAlloc, page faults, hard faults, heap, pool, working sets",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="memory" title="Memory" presets={PRESETS} />,
};
