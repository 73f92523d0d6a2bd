/** What threads did: who runs, who waits, who must queue for a processor. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Time by process and thread", table: "thread_time", group: ["upid", "utid"], values: [{ column: "cpu_ns", fn: "sum" }, { column: "wait_ns", fn: "sum" }, { column: "ready_ns", fn: "sum" }, { column: "ready_max_ns", fn: "max" }, { column: "runs", fn: "sum" }, { column: "preempted", fn: "sum" }] },
  { name: "Context switches by new process and thread", table: "cswitch", group: ["new_upid", "new_utid"], values: [{ column: "cpu_ns", fn: "sum" }, { column: "wait_ns", fn: "sum" }, { column: "ready_ns", fn: "sum" }, { column: "ready_ns", fn: "max" }, { fn: "count" }] },
  { name: "Waits by reason and stack", table: "cswitch", group: ["prev_wait_reason", "new_upid", "stack_id.leaf"], values: [{ column: "wait_ns", fn: "sum" }, { column: "wait_ns", fn: "max" }, { fn: "count" }] },
  { name: "Who readies whom", table: "cswitch", group: ["readying_upid", "new_upid", "new_utid"], values: [{ column: "wait_ns", fn: "sum" }, { fn: "count" }, { column: "ready_ns", fn: "sum" }] },
  { name: "Waits by process, stack and reason", table: "wait_cost", group: ["upid", "wait_reason", "stack_id"], values: [{ column: "wait_union_ns", fn: "sum" }, { column: "wait_sum_ns", fn: "sum" }, { column: "ready_sum_ns", fn: "sum" }, { column: "count", fn: "sum" }, { column: "wait_max_ns", fn: "max" }] },
  { name: "Wait chains", table: "wait_chain", group: ["waiting_upid", "readied_by", "readying_upid"], values: [{ column: "wait_union_ns", fn: "sum" }, { column: "wait_sum_ns", fn: "sum" }, { column: "count", fn: "sum" }, { column: "wait_max_ns", fn: "max" }, { column: "inverted_wait_ns", fn: "sum" }] },
  { name: "Critical paths", table: "critical_path", group: ["path_id", "kind", "upid"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }] },
  { name: "Thread starts", table: "thread", group: ["upid", "start_module", "start_function"], values: [{ fn: "count" }, { column: "start_ns", fn: "min" }, { column: "dur_ns", fn: "sum" }] },
];

export const panel: Panel = {
  id: "threads",
  title: "Threads",
  group: "wait",
  order: 40,
  about: "Threads: running, waiting and ready time, starts and ends",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="threads" title="Threads" presets={PRESETS} />,
};
