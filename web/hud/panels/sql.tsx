/** SQL over all tables and views of the trace, with what each table and column means beside it. */

import { onDemand } from "../app/on_demand.tsx";
import type { Panel } from "../app/panel.ts";

export const panel: Panel = {
  id: "sql",
  title: "SQL",
  group: "tools",
  order: 10,
  about: "Any question over all tables and views",
  tables: [],
  View: onDemand((more) => more.SqlPanel),
};
