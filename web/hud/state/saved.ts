/**
 * Views that somebody named, without what belongs to one trace alone: in the user's configuration (`~/.config/etwhy/views/saved.json`) if the
 * server may write there, and in this browser.
 */

import { signal } from "@preact/signals";
import { ask, Fault } from "../wire/api.ts";
import type { NotesFile } from "../wire/types.ts";
import { look, view, type View } from "./view.ts";

export interface Saved {
  name: string;
  panel: string;
  settings: View["settings"];
}

const KEY = "etwhy-views";
const FORMAT = "etwhy.views/1";
const MOST = 50;

const listed = (list: unknown): Saved[] =>
  Array.isArray(list) ? list.filter((one): one is Saved => typeof (one as Saved | null)?.name === "string" && typeof (one as Saved).panel === "string" && typeof (one as Saved).settings === "object") : [];

function read(): Saved[] {
  try {
    return listed(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
  } catch {
    return [];
  }
}

export const saved = signal<Saved[]>(read());

/** The file that has them; null: this browser alone does. */
const place = signal<NotesFile | null>(null);
export const viewsFile = (): string | null => (place.value && !place.value.why ? place.value.file : null);

function inBrowser(list: Saved[]): void {
  saved.value = list.slice(-MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(saved.value));
  } catch {
    // Kept for this page only.
  }
}

/** The first, and those of the second that have other names. */
const both = (one: Saved[], other: Saved[]) => [...other.filter((each) => !one.some(({ name }) => name === each.name)), ...one];

/** Writes the file as `change` makes it of what is there: again if somebody else wrote meanwhile. */
async function store(change: (list: Saved[]) => Saved[]): Promise<void> {
  for (let turn = 0; turn < 3 && viewsFile() !== null; turn += 1) {
    const list = change(listed(place.value?.notes?.["views"]));
    try {
      place.value = await ask("views", { views: { format: FORMAT, views: list }, version: place.value?.version ?? "" });
      return;
    } catch (error) {
      if (!(error instanceof Fault) || error.status !== 409) {
        if (place.value) place.value = { ...place.value, why: error instanceof Error ? error.message : String(error) };
        return;
      }
      place.value = await ask("views").catch(() => null);
      inBrowser(change(listed(place.value?.notes?.["views"])));
    }
  }
}

/** Changes are written one after the other. */
let queue = Promise.resolve();

function keep(change: (list: Saved[]) => Saved[]): void {
  inBrowser(change(saved.value));
  queue = queue.then(() => store((list) => change(list).slice(-MOST)));
}

/** Brings what the file has; what only this browser had goes into it with the next change. */
export async function followViews(): Promise<void> {
  place.value = await ask("views").catch(() => null);
  const there = listed(place.value?.notes?.["views"]);
  if (there.length > 0) inBrowser(both(there, saved.value));
}

/** The panel with its columns, groups and settings, and how the time axis is set up. */
export function saveView(name: string): void {
  const { panel, settings } = view.value;
  const own = Object.fromEntries(Object.entries(settings).filter(([key]) => key === panel || key === "timeline"));
  keepView({ name, panel, settings: own });
}

/** Keeps a view, in the place of one with this name. */
export const keepView = (one: Saved) => keep((list) => both([one], list));

export const dropView = (name: string) => keep((list) => list.filter((one) => one.name !== name));

export const showView = (one: Saved) => look({ panel: one.panel, settings: { ...view.value.settings, ...one.settings } });
