/** Generic events: by provider, task and name, then with their fields. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";

const PRESETS: Preset[] = [
  { name: "Kinds by provider and task", table: "event_type", group: ["provider", "task", "name"], values: [{ column: "count", fn: "sum" }, { column: "bytes", fn: "sum" }] },
  { name: "Events by provider and name", table: "event", group: ["provider", "name", "upid"], values: [{ fn: "count" }] },
  { name: "Events by process", table: "event", group: ["upid", "provider", "name"], values: [{ fn: "count" }] },
  { name: "Events with their fields", table: "event", group: [], values: [], mode: "rows", columns: ["ts_ns", "provider", "name", "upid", "utid", "cpu", "level", "fields", "message", "activity", "stack_id"] },
  { name: "Events by caller", table: "event", group: ["provider", "name", "stack_id"], values: [{ fn: "count" }] },
  { name: "Activities", table: "event", group: ["activity", "provider", "name"], values: [{ fn: "count" }, { column: "ts_ns", fn: "min" }, { column: "ts_ns", fn: "max" }], where: [{ column: "activity", op: "not_null" }] },
];

export const panel: Panel = {
  id: "events",
  title: "Events",
  group: "tools",
  order: 0,
  about: "Every kind of event with its count; the events themselves with their fields",
  tables: [...new Set(PRESETS.map((preset) => preset.table))],
  View: () => <Pivot id="events" title="Events" presets={PRESETS} />,
};
