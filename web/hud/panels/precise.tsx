/** CPU usage, precise: threads run, are ready, wait; who wakes whom; what a time range was spent on. */

import { onDemand } from "../app/on_demand.tsx";
import type { Panel } from "../app/panel.ts";

export const panel: Panel = {
  id: "precise",
  title: "CPU usage, precise",
  group: "cpu",
  order: 20,
  about: "What threads did over time: running, ready, waiting; wake-ups; the critical path of an interval",
  tables: ["cswitch"],
  View: onDemand((more) => more.Precise),
};
