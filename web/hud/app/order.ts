/** All panels, in the order of the navigation. */

import { nameOfPanel } from "../parts/names.ts";
import { ALL } from "../panels/index.ts";
import type { Panel } from "./panel.ts";

export const GROUPS: Record<Panel["group"], string> = { look: "", cpu: "CPU", wait: "Waiting", io: "Input and output", memory: "Memory", system: "System", tools: "Tools" };

export const groups = Object.keys(GROUPS).map((group) => ({
  group: group as Panel["group"],
  panels: ALL.filter((panel) => panel.group === group).sort((a, b) => a.order - b.order || a.title.localeCompare(b.title)),
}));

export const ORDER: Panel[] = groups.flatMap((one) => one.panels);
for (const panel of ORDER) nameOfPanel(panel.id, panel.title, panel.tables);

/** Those that a digit goes to, from 1. */
export const DIGITS = ["overview", "stacks", "precise", "interrupts", "threads", "files", "disk", "network", "memory"];

// For `web/pictures.mjs` and tests, which go through all of them.
(globalThis as { etwhyPanels?: string[] }).etwhyPanels = ORDER.map((panel) => panel.id);
