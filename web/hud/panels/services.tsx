/** Services and the calls between processes. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Services", table: "service", group: ["state", "svchost_group", "name"], values: [{ column: "threads", fn: "sum" }, { fn: "count" }], mode: "rows", columns: ["name", "display_name", "state", "upid", "pid", "svchost_group", "threads", "tag"] },
  { name: "Chains of calls", table: "service_chain", group: ["chain", "upid", "service"], values: [{ column: "own_ns", fn: "sum" }, { column: "server_ns", fn: "sum" }, { column: "round_trip_ns", fn: "sum" }, { column: "calls", fn: "sum" }] },
  { name: "ALPC by client and server", table: "alpc", group: ["client_upid", "server_upid", "port"], values: [{ column: "wait_ns", fn: "sum" }, { column: "round_trip_ns", fn: "sum" }, { column: "round_trip_ns", fn: "max" }, { column: "server_ns", fn: "sum" }, { fn: "count" }] },
  { name: "ALPC by server", table: "alpc", group: ["server_upid", "port", "client_upid"], values: [{ column: "server_ns", fn: "sum" }, { column: "latency_ns", fn: "sum" }, { column: "latency_ns", fn: "max" }, { fn: "count" }] },
  { name: "ALPC by caller", table: "alpc", group: ["client_upid", "stack_id"], values: [{ column: "wait_ns", fn: "sum" }, { fn: "count" }] },
  { name: "WMI", table: "wmi_operation", group: ["upid", "method", "query"], values: [{ fn: "count" }] },
];

export const panel: Panel = {
  id: "services",
  title: "Services",
  group: "system",
  order: 20,
  about: "Services, ALPC calls between processes, WMI",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="services" title="Services" presets={PRESETS} />,
};
