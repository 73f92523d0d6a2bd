/** Any table of the trace as a pivot table or as rows: what no other panel shows is here. */

import type { Panel } from "../app/panel.ts";
import { AnyTable } from "../parts/pivot/pivot.tsx";
import { schema } from "../state/view.ts";

function Tables() {
  const all = schema.value?.tables ?? [];
  const names = [...all.filter((one) => one.rows > 0), ...all.filter((one) => one.rows === 0)].map((one) => one.name);
  return <AnyTable id="tables" tables={names} />;
}

export const panel: Panel = {
  id: "tables",
  title: "Tables",
  group: "tools",
  order: 8,
  about: "Any table: groups, sums, rows",
  tables: [],
  View: Tables,
};
