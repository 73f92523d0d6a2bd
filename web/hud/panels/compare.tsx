/** Before and after: two traces or two ranges. */

import { onDemand } from "../app/on_demand.tsx";
import type { Panel } from "../app/panel.ts";

export const panel: Panel = {
  id: "compare",
  title: "Compare",
  group: "look",
  order: 50,
  about: "Before and after: two traces or two ranges",
  tables: [],
  View: onDemand((more) => more.Compare),
};
