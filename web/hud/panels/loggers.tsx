/** Sessions and the providers enabled to them; the machine and the files of the trace. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Sessions", table: "logger", group: ["name", "source"], values: [{ column: "events", fn: "sum" }, { column: "events_lost", fn: "max" }, { column: "buffers_lost", fn: "max" }, { column: "providers", fn: "max" }, { fn: "count" }], mode: "rows", columns: ["name", "own", "source", "conflict", "kernel_flags", "providers", "events_lost", "buffers_lost", "buffer_bytes", "log_file", "mode", "actions"] },
  { name: "Providers by session", table: "logger_provider", group: ["session", "provider", "action"], values: [{ fn: "count" }] },
  { name: "Kernel events", table: "kernel_class", group: ["class"], values: [{ column: "events", fn: "sum" }, { column: "silent_ns", fn: "max" }, { column: "pause_ns", fn: "max" }] },
  { name: "Machine", table: "machine", group: [], values: [], mode: "rows" },
  { name: "Files of the trace", table: "trace", group: [], values: [], mode: "rows" },
];

export const panel: Panel = {
  id: "loggers",
  title: "Recording sessions",
  group: "system",
  order: 50,
  about: "Which sessions record what, on whose machine, and who else listens",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="loggers" title="Recording sessions" presets={PRESETS} />,
};
