/**
 * What becomes of traces that were opened: the server tells while any of them is read, and is asked where something went wrong. Nothing
 * waits for a trace that another one keeps waiting.
 */

import { computed, effect, signal } from "@preact/signals";
import { ask, trouble } from "../wire/api.ts";
import type { Session, TraceInfo } from "../wire/types.ts";
import { forget, session } from "./session.ts";
import { look, view } from "./view.ts";

/** True while more of a trace comes. */
const comes = (one: TraceInfo): boolean => underWay(one) || (one.stage === "ready" && one.live != null && (!one.live.ended || one.live.paused));

/** True while the process of a trace works on it. */
export const underWay = (one: TraceInfo): boolean => ["waiting", "reading", "verdict"].includes(one.stage);

/** Time between two questions where the server does not tell by itself, milliseconds. */
const PAUSE = 500;

let source: EventSource | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

function take(now: Session): void {
  session.value?.traces.forEach((before) => {
    const after = now.traces[before.trace];
    // Read anew: what was known of it may have changed.
    if (before.stage !== after?.stage && after?.stage === "reading") forget(before.trace);
  });
  session.value = now;
}

/** Asks how all traces are. */
export async function refresh(): Promise<void> {
  try {
    take(await ask("session"));
  } catch {
    // The question that brought this says what is wrong.
  }
}

function poll(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void refresh().then(() => session.value?.traces.some(comes) && poll()), PAUSE);
}

function listen(): void {
  if (source) return;
  source = new EventSource("api/v1/events");
  source.onmessage = (event) => take(JSON.parse(event.data as string) as Session);
  source.onerror = () => {
    // A browser connects again by itself, unless it was refused.
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    poll();
  };
}

/** Follows the traces from now on. The connection is there only while something changes: browsers open six at a time. */
export function followTraces(): void {
  trouble.heard = () => void refresh();
  effect(() => {
    if (session.value?.traces.some(comes)) {
      listen();
    } else {
      source?.close();
      source = null;
    }
  });
}

/** Resolves as soon as it is known which of these recordings are wanted (by their ids), or of all which they are. */
export function known(wanted: string[]): Promise<void> {
  return new Promise((done) => {
    const stop = effect(() => {
      const traces = session.value?.traces ?? [];
      const found = wanted.every((id) => traces.some((one) => one.trace_id === id));
      if (found || traces.every((one) => one.trace_id !== "" || !underWay(one))) {
        done();
        queueMicrotask(() => stop());
      }
    });
  });
}

/** The trace that is shown, and its progress. */
export const shownTrace = computed<TraceInfo | null>(() => session.value?.traces[view.value.trace] ?? null);

/** Adds a trace that the server opened, and shows it. */
export function arrived(info: TraceInfo): void {
  const now = session.value;
  if (now && !now.traces.some((one) => one.trace === info.trace)) session.value = { ...now, traces: [...now.traces, info] };
}

/** A trace that a link shows and that is not open: where it may be opened, and the link. */
export interface Missing {
  name: string;
  trace_id: string;
  hash: string;
  path: string | null;
}
export const missing = signal<Missing | null>(null);

/** Shows what an address says, even if it stands there already: `link.ts` does it. */
export const jump = { to: (_hash: string): void => undefined };

/** Looks for a file of that name in the folders of the server. */
export async function lookFor(name: string, trace_id: string, hash: string): Promise<void> {
  missing.value = { name, trace_id, hash, path: null };
  for (const folder of session.value?.folders ?? []) {
    try {
      const found = (await ask("folder", { path: folder })).entries.find((one) => one.name === name);
      if (found && missing.value?.hash === hash) {
        missing.value = { name, trace_id, hash, path: found.path };
        return;
      }
    } catch {
      // The next one may have it.
    }
  }
}

/** Opens the missing trace, and follows the link when it is known that this is the one. */
export async function openMissing(): Promise<string | null> {
  const wanted = missing.value;
  if (!wanted?.path) return null;
  const info = await ask("open", { path: wanted.path });
  arrived(info);
  await known([wanted.trace_id || "?"]);
  const found = session.value?.traces[info.trace];
  missing.value = null;
  if (found && wanted.trace_id !== "" && found.trace_id !== wanted.trace_id) {
    look({ trace: info.trace });
    return `${wanted.name} is another recording than the one that the link shows.`;
  }
  jump.to(wanted.hash);
  return null;
}
