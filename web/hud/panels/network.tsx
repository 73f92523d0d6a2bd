/** Network use. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "By process and remote", table: "network", group: ["upid", "remote", "op"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "By protocol", table: "network", group: ["protocol", "op", "upid"], values: [{ column: "size_bytes", fn: "sum" }, { fn: "count" }] },
  { name: "Use by process and address", table: "network_usage", group: ["upid", "remote"], values: [{ column: "sent_bytes", fn: "sum" }, { column: "received_bytes", fn: "sum" }, { column: "connections", fn: "sum" }, { column: "retransmits", fn: "sum" }] },
  { name: "Connections", table: "tcp_connection", group: ["upid", "remote"], values: [{ column: "received_bytes", fn: "sum" }, { column: "sent_bytes", fn: "sum" }, { column: "retransmits", fn: "sum" }, { column: "first_response_ns", fn: "max" }, { column: "slowest_send_ns", fn: "max" }, { fn: "count" }] },
  { name: "DNS by process and name", table: "dns_query", group: ["upid", "name"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { fn: "count" }] },
  { name: "DNS failures", table: "dns_query", group: ["status_name", "name", "upid"], values: [{ fn: "count" }, { column: "dur_ns", fn: "max" }], where: [{ column: "status", op: "ne", value: 0 }] },
  { name: "Failures", table: "network", group: ["failure", "upid", "remote"], values: [{ fn: "count" }], where: [{ column: "failure", op: "not_null" }] },
  { name: "Plan for receive side scaling", table: "rss_advice", group: [], values: [], mode: "rows" },
];

export const panel: Panel = {
  id: "network",
  title: "Network",
  group: "io",
  order: 60,
  about: "TCP, UDP, connections and DNS by process and address",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="network" title="Network" presets={PRESETS} />,
};
