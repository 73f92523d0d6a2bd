/** Notes on the time axis: they stand in the view, so that links carry them, and in this browser by trace; a file takes them elsewhere. */

import { effect } from "@preact/signals";
import { look, set, setting, trace, view } from "./view.ts";

export interface Note {
  /** Nanoseconds since the start of the trace's clock. */
  at: number;
  /** End, if it is about a stretch. */
  to?: number;
  text: string;
}

interface Kept {
  list: Note[];
}

const KEY = "etwhy-notes ";
const MOST = 200;

export const notesOf = (): Note[] => setting<Kept>("notes", { list: [] }).list;

function keep(list: Note[]): void {
  set<Kept>("notes", { list: list.slice(0, MOST) });
}

export const addNote = (note: Note) => keep([...notesOf(), note].sort((a, b) => a.at - b.at));
export const changeNote = (at: number, text: string) => keep(text.trim() === "" ? notesOf().filter((_, i) => i !== at) : notesOf().map((one, i) => (i === at ? { ...one, text } : one)));

/** A file of notes; what does not look like one is left out. */
export function readNotes(text: string): Note[] {
  const found = JSON.parse(text) as { notes?: unknown };
  const list = Array.isArray(found.notes) ? found.notes : [];
  return list.flatMap((one: Partial<Note>): Note[] => (typeof one?.at === "number" && typeof one.text === "string" ? [{ at: one.at, text: one.text.slice(0, 2000), ...(typeof one.to === "number" ? { to: one.to } : {}) }] : []));
}

export const merge = (more: Note[]) => keep([...notesOf(), ...more].sort((a, b) => a.at - b.at));

export const asFile = () => JSON.stringify({ format: "etwhy.notes/1", trace: trace.value?.name ?? "", trace_id: trace.value?.trace_id ?? "", notes: notesOf() }, null, 1);

/** Keeps notes of each trace in this browser, and brings them back when it is opened again. */
export function followNotes(): void {
  let shown = "";
  effect(() => {
    const id = trace.value?.trace_id;
    const list = (view.value.settings["notes"] as Kept | undefined)?.list;
    if (!id) return;
    try {
      if (shown !== id) {
        shown = id;
        const kept = localStorage.getItem(KEY + id);
        // A link's own notes come first.
        if (kept && !list) queueMicrotask(() => look({ settings: { ...view.value.settings, notes: { list: readNotes(kept) } } }));
      } else if (list) localStorage.setItem(KEY + id, JSON.stringify({ notes: list }));
    } catch {
      // No storage here: links and files still hold them.
    }
  });
}
