/** Frequency, idle states, timer resolution and energy. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Frequency by processor", table: "cpu_frequency", group: ["cpu", "kind"], values: [{ column: "mhz", fn: "min" }, { column: "mhz", fn: "max" }, { column: "mhz", fn: "avg" }, { column: "percent", fn: "min" }, { fn: "count" }] },
  { name: "Idle states", table: "idle_state", group: ["cpu", "state"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "avg" }, { fn: "count" }] },
  { name: "Processors", table: "cpu", group: ["cpu"], values: [{ column: "busy_percent", fn: "max" }, { column: "thread_ns", fn: "sum" }, { column: "dpc_ns", fn: "sum" }, { column: "isr_ns", fn: "sum" }, { column: "pegged_ns", fn: "sum" }, { column: "queue_max", fn: "max" }, { column: "switches", fn: "sum" }] },
  { name: "Processors over time", table: "cpu_time", group: ["cpu"], values: [{ column: "thread_ns", fn: "sum" }, { column: "dpc_ns", fn: "sum" }, { column: "isr_ns", fn: "sum" }, { column: "idle_ns", fn: "sum" }, { column: "ready_ns", fn: "sum" }, { column: "switches", fn: "sum" }] },
  { name: "Timer resolution", table: "timer_resolution", group: ["upid", "program", "kind"], values: [{ column: "period_ns", fn: "min" }, { column: "finest_ns", fn: "min" }, { fn: "count" }] },
  { name: "Energy by program", table: "energy", group: ["app"], values: [{ column: "cpu_energy", fn: "sum" }, { column: "gpu_energy", fn: "sum" }, { column: "disk_energy", fn: "sum" }, { column: "network_energy", fn: "sum" }, { column: "display_energy", fn: "sum" }, { column: "attributed_cpu_energy", fn: "sum" }] },
];

export const panel: Panel = {
  id: "power",
  title: "Power",
  group: "cpu",
  order: 70,
  about: "Frequencies, limits, idle states, timers, and energy",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="power" title="Power" presets={PRESETS} />,
};
