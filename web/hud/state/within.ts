/** The verdict of what is selected: the same rules over that part, as `etwhy why --from --to` asks them. */

import { effect, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import { ask } from "../wire/api.ts";
import type { PartVerdict } from "../wire/types.ts";
import { inForce, part, ranged } from "./view.ts";

/** The server is looking for it. */
export const seeking = signal(false);
export const seekError = signal<string | null>(null);

let abort: AbortController | undefined;

/** What is left of a verdict for processes: the findings that name them, and those of the whole machine. */
function narrowed(found: PartVerdict): Report {
  if (found.processes.length + found.excluded.length === 0) return found.report;
  const named = new Map(found.named.map((one) => [one.finding, one.hits]));
  const findings = found.report.findings.map((one) => {
    if (one.hits.length === 0 || found.machine_wide.includes(one.id)) return one;
    // Numbers of hits stay as they are: the server is asked with them.
    return named.has(one.id) ? one : { ...one, answer: "not_found" as const, hits: [] };
  });
  return { ...found.report, findings };
}

/** Asks for the verdict of what is selected now. */
export async function seek(): Promise<void> {
  stopSeeking();
  const controller = new AbortController();
  abort = controller;
  seeking.value = true;
  const asked = part.value;
  try {
    const found = await ask("verdict", asked, controller.signal);
    if (!controller.signal.aborted) ranged.value = { trace: asked.trace, found, report: narrowed(found) };
  } catch (error) {
    if (!controller.signal.aborted) seekError.value = error instanceof Error ? error.message : String(error);
  }
  if (abort === controller) seeking.value = false;
}

/** Gives it up. */
export function stopSeeking(): void {
  abort?.abort();
  seeking.value = false;
  seekError.value = null;
}

/** Back to the verdict of the whole trace. */
export function forgetPart(): void {
  stopSeeking();
  ranged.value = null;
}

const processesOf = () => JSON.stringify(part.value.filters.filter((one) => one.kind === "process").map((one) => [one.value, one.not]));

/** Who is filtered to changes what of a verdict is shown; another range, or another trace, ends what is being looked for. */
export function followPart(): void {
  let [place, process] = ["", ""];
  effect(() => {
    const [at, who] = [JSON.stringify([part.value.trace, part.value.range]), processesOf()];
    if (at !== place) stopSeeking();
    // The server keeps the verdict of a range: this is no second reading.
    else if (who !== process && inForce.peek()) void seek();
    [place, process] = [at, who];
  });
}
