/** What is used now and then: a file of its own (`dist/hud-more.js`), loaded when somebody needs it (`app/on_demand.tsx`). */

export { Writing } from "../app/write.tsx";
export { ButterflyTab } from "../parts/stacks/butterfly.tsx";
export { ChartTab } from "../parts/stacks/chart.tsx";
export { Compare } from "./compare.tsx";
export { Precise } from "./precise.tsx";
export { SqlPanel } from "./sql.tsx";
