/** A finding selects its time range, its rows and its stacks in every panel. */

import { say } from "../parts/live.tsx";
import { ask } from "../wire/api.ts";
import { foundWhen } from "./session.ts";
import { inForce, look, scope, view } from "./view.ts";

/**
 * Selects what a culprit of a finding did; goes to a panel if one is named. Stacks keep everything and mark the culprit: its share of all
 * is what one wants to see there.
 */
export async function selectHit(finding: string, hit: number, panel?: string): Promise<void> {
  try {
    const within = inForce.value?.found.range ?? null;
    const found = await ask("select", { trace: view.value.trace, finding, hit, within, ...foundWhen(view.value.trace) });
    // The verdict of a part holds for that part: it stays selected.
    if (within) found.range = scope.value;
    // Filters that an earlier finding set go with it; the user's own stay.
    const mine = view.value.finding ? [] : view.value.filters;
    const frames = found.filters.filter((one) => one.kind === "module" || one.kind === "frame");
    const marked = panel === "stacks" ? frames : [];
    const added = found.filters.filter((one) => !marked.includes(one)).filter((one) => !mine.some((own) => own.kind === one.kind && own.value === one.value));
    // Of two filters of a kind one is enough: the user's own would show more than the culprit.
    const kept = mine.filter((own) => own.not || !added.some((one) => one.kind === own.kind));
    const [from, to] = found.range ?? [0, 0];
    const [zoomFrom, zoomTo] = view.value.zoom ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    // What was zoomed into may hide it.
    const zoom = found.range && (from < zoomFrom || to > zoomTo) ? null : view.value.zoom;
    look({
      finding: `${finding}#${hit}`,
      selection: found.range,
      filters: [...kept, ...added],
      zoom,
      past: zoom === view.value.zoom ? view.value.past : [...view.value.past.slice(-49), view.value.zoom],
      settings: { ...view.value.settings, stacks: { ...(view.value.settings["stacks"] as object | undefined), metric: found.metric, ...(marked[0] ? { search: String(marked[0].value), root: [] } : {}) } },
      ...(panel ? { panel } : {}),
    });
    const what = found.filters.map((one) => `${one.kind} ${one.label}`).join(", ");
    say(`${what ? `Filtered to ${what}` : "Selected"}: ${found.why}`);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
}

/** Takes the selection of a finding back. */
export function deselect(): void {
  look({ finding: null, selection: null, filters: [] });
}

/** Where to look for a topic, in the order of use. */
export const WHERE: Record<string, string[]> = {
  interrupts: ["interrupts", "stacks"],
  cpu: ["stacks", "precise"],
  growth: ["stacks", "precise"],
  machine: ["stacks", "precise"],
  security: ["stacks", "files", "minifilter"],
  disks: ["disk", "files"],
  files: ["files", "stacks"],
  registry: ["registry", "stacks"],
  memory: ["memory", "stacks"],
  network: ["network", "stacks"],
  processes: ["processes", "stacks"],
  services: ["services", "stacks"],
  power: ["power"],
  dotnet: ["clr", "stacks"],
  "user interface": ["hangs", "precise"],
  trace: ["loggers", "ledger", "stacks"],
};
