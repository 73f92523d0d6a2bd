/**
 * A trace that is followed: its window moves on, and with it everything that was asked of it. Whoever selects or zooms looks back: the window
 * then stays on the server until he goes on, so that the page never holds more than one.
 */

import { computed, effect } from "@preact/signals";
import { ask, windowOf } from "../wire/api.ts";
import type { Live } from "../wire/types.ts";
import { note } from "./notes.ts";
import { forget, load, session } from "./session.ts";
import { look, trace, view } from "./view.ts";

export const followed = computed<Live | null>(() => trace.value?.live ?? null);
/** Counts the windows of the trace that is shown; 0: it is not followed. */
export const tick = computed(() => followed.value?.number ?? 0);

/** Keeps the window, or lets it move on. */
export function pause(paused: boolean): void {
  if (!paused) look({ zoom: null, selection: null, past: [], finding: null });
  ask("pause", { trace: view.value.trace, paused }).catch((error: unknown) => note(error instanceof Error ? error.message : String(error)));
}

/** `14:03:07` where the trace was recorded. */
export const clock = (ms: number, live: Live) => new Date(ms + live.offset_ms).toISOString().slice(11, 19);

/** Follows the trace that is shown. */
export function followLive(told: (text: string) => void): void {
  windowOf.trace = (number) => session.peek()?.traces.find((one) => one.trace === number)?.live?.number ?? null;
  let [shown, number, busy, again, asked] = [-1, 0, false, false, 0];
  let known = new Set<string>();
  const refresh = async (): Promise<void> => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    forget(view.value.trace);
    await load(view.value.trace);
    busy = false;
    if (!again) return;
    again = false;
    await refresh();
  };
  effect(() => {
    const [now, at] = [tick.value, view.value.trace];
    if (at === shown && now > number && number > 0) void refresh();
    [shown, number] = [at, now];
  });
  effect(() => {
    const live = followed.value;
    const { zoom, selection } = view.value;
    if (!live || live.paused || live.ended || (!zoom && !selection) || asked === live.number) return;
    asked = live.number;
    void ask("pause", { trace: view.peek().trace, paused: true }).catch(() => undefined);
  });
  effect(() => {
    const live = followed.value;
    const news = live?.lasting.filter((one) => !known.has(one.id)) ?? [];
    if (live && news.length > 0) told(`Found since ${clock(live.now_ms, live)}: ${[...new Set(news.map((one) => one.culprit))].join(", ")}`);
    known = new Set(live?.lasting.map((one) => one.id));
  });
}
