/** What can be done with a driver that runs DPCs or ISRs, or stands on their stacks: in the inspector, and as the menu of its row. */

import type { Action, Card } from "../state/inspect.ts";
import { addFilter, look, set } from "../state/view.ts";
import type { InterruptClass } from "../wire/types.ts";
import { addTrack } from "./timeline/catalog.ts";

/** `own`: what else its row does, first of all. */
export function interruptCard(of: InterruptClass, module: string, name: string, facts: [string, string][], own: Action[] = []): Card {
  const word = of.toUpperCase();
  return {
    id: `${of} ${module} ${name}`,
    kind: name === module ? `Driver in ${word}s` : `${word} routine`,
    swatch: module,
    title: name,
    knows: module,
    facts,
    actions: [
      ...own,
      { text: "Open stacks", run: () => { set("stacks", { metric: of, search: name }); look({ panel: "stacks" }); } },
      { text: "Filter", run: () => addFilter({ kind: "module", value: module, label: module }) },
    ],
  };
}

/** Its time, on the time axis above all panels. */
export const interruptTrack = (of: InterruptClass, module: string): Action => ({
  text: "Add track",
  run: () => addTrack({ id: `own ${of} ${module}`, title: `${of.toUpperCase()}s of ${module}`, table: of, sum: "exclusive_ns", where: [{ column: "module", op: "eq", value: module }] }),
});
