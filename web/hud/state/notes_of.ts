/**
 * Notes on the time axis. They stand in the view, so that links carry them; in the file beside the trace, if the server may write one
 * (`x.etl.notes.json`); and in this browser, by trace. A file takes them elsewhere.
 */

import { effect, signal } from "@preact/signals";
import { ask, Fault } from "../wire/api.ts";
import type { NotesFile } from "../wire/types.ts";
import { amend } from "./link.ts";
import { set, setting, trace, view } from "./view.ts";

export interface Note {
  /** Nanoseconds since the start of the trace's clock. */
  at: number;
  /** End, if it is about a stretch. */
  to?: number;
  text: string;
}

interface Kept {
  list: Note[];
  /** The trace that they are of; links of older versions do not say it. */
  of?: string;
}

const KEY = "etwhy-notes ";
const MOST = 200;

/** Where notes of the trace that is shown are kept: a file, or why there is none. */
export const place = signal<NotesFile | null>(null);

/** Those of the view: null if it has none of this trace. */
const own = (): Note[] | null => {
  const kept = setting<Kept | null>("notes", null);
  const id = trace.value?.trace_id;
  return Array.isArray(kept?.list) && (kept.of === undefined || !id || kept.of === id) ? inside({ notes: kept.list }) : null;
};
export const notesOf = (): Note[] => own() ?? [];

/** Lists that were written or read here. The back button may bring one of them back; any other is of a link, and nobody asked to save it. */
const ours = new Set<string>();

function keep(list: Note[]): void {
  const some = inside({ notes: list });
  ours.add(JSON.stringify(some));
  set<Kept>("notes", { list: some, of: trace.value?.trace_id ?? "" });
}

const inOrder = (list: Note[]) => list.sort((a, b) => a.at - b.at);
export const addNote = (note: Note) => keep(inOrder([...notesOf(), note]));
export const changeNote = (at: number, text: string) => keep(text.trim() === "" ? notesOf().filter((_, i) => i !== at) : notesOf().map((one, i) => (i === at ? { ...one, text } : one)));

/** Notes in an object; what does not look like one is left out. */
function inside(found: { notes?: unknown } | null): Note[] {
  const list = Array.isArray(found?.notes) ? found.notes : [];
  return list.slice(0, MOST).flatMap((one: Partial<Note>): Note[] => (Number.isFinite(one?.at) && typeof one.text === "string" ? [{ at: Number(one.at), text: one.text.slice(0, 2000), ...(Number.isFinite(one.to) ? { to: Number(one.to) } : {}) }] : []));
}

/** A file of notes. */
export const readNotes = (text: string): Note[] => inside(JSON.parse(text) as { notes?: unknown });

/** Both, each once. */
function both(one: Note[], other: Note[]): Note[] {
  const seen = new Set(one.map((each) => JSON.stringify(each)));
  return inOrder([...one, ...other.filter((each) => !seen.has(JSON.stringify(each)))]);
}

export const merge = (more: Note[]) => keep(both(notesOf(), more));

const asObject = () => ({ format: "etwhy.notes/1", trace: trace.value?.name ?? "", trace_id: trace.value?.trace_id ?? "", notes: notesOf() });
export const asFile = () => JSON.stringify(asObject(), null, 1);

/** The file that notes are saved in as they are written; null: they have to be downloaded. */
export const savedIn = (): string | null => (place.value && !place.value.why ? place.value.file : null);

let saving = false;
let more = false;

/** Writes the file beside the trace. Somebody else may have written meanwhile: then both are kept. */
async function store(): Promise<void> {
  const now = place.value;
  const at = trace.value;
  if (!at || !savedIn()) return;
  if (saving) {
    more = true;
    return;
  }
  saving = true;
  try {
    place.value = await ask("notes", { trace: at.trace, notes: asObject(), version: now?.version ?? "" });
  } catch (error) {
    if (error instanceof Fault && error.status === 409) {
      place.value = await ask("notes", { trace: at.trace });
      merge(inside(place.value.notes));
      more = true;
    } else if (now) place.value = { ...now, why: error instanceof Error ? error.message : String(error) };
  }
  saving = false;
  if (!more) return;
  more = false;
  await store();
}

/** Keeps the notes of each trace where they can be kept, and brings them back when it is opened again. */
export function followNotes(): void {
  let [shown, last] = ["", ""];
  /** What was read before, with what a link brought: the next change saves both. */
  const join = (id: string, before: Note[], brought: Note[]) => {
    const list = both(before, brought).slice(0, MOST);
    last = JSON.stringify(list);
    ours.add(last);
    amend({ settings: { ...view.value.settings, notes: { list, of: id } } });
  };
  const bring = async (id: string, number: number) => {
    const found = await ask("notes", { trace: number }).catch(() => null);
    if (shown !== id) return;
    place.value = found;
    let list = inside(found?.notes ?? null);
    try {
      if (list.length === 0) list = readNotes(localStorage.getItem(KEY + id) ?? "{}");
    } catch {
      // No storage here, or not ours.
    }
    if (list.length > 0) join(id, list, notesOf());
  };
  effect(() => {
    const id = trace.value?.trace_id;
    const list = own();
    if (!id) return;
    const text = list ? JSON.stringify(list) : "";
    if (shown !== id) {
      [shown, last] = [id, text];
      ours.clear();
      place.value = null;
      void bring(id, view.peek().trace);
    } else if (list && text !== last && !ours.has(text)) {
      join(id, last === "" ? [] : readNotes(`{"notes":${last}}`), list);
    } else if (list && text !== last) {
      last = text;
      try {
        localStorage.setItem(KEY + id, JSON.stringify({ notes: list }));
      } catch {
        // No storage here: links and files still hold them.
      }
      queueMicrotask(() => void store());
    }
  });
}
