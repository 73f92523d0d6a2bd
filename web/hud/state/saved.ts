/** Views that somebody named: kept in this browser, without what belongs to one trace alone. */

import { signal } from "@preact/signals";
import { look, view, type View } from "./view.ts";

export interface Saved {
  name: string;
  panel: string;
  settings: View["settings"];
}

const KEY = "etwhy-views";
const MOST = 50;

function read(): Saved[] {
  try {
    const list = JSON.parse(localStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(list) ? list.filter((one): one is Saved => typeof (one as Saved)?.name === "string" && typeof (one as Saved).panel === "string") : [];
  } catch {
    return [];
  }
}

export const saved = signal<Saved[]>(read());

function keep(list: Saved[]): void {
  saved.value = list.slice(-MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(saved.value));
  } catch {
    // Kept for this page only.
  }
}

/** The panel with its columns, groups and settings, and how the time axis is set up. */
export function saveView(name: string): void {
  const { panel, settings } = view.value;
  const own = Object.fromEntries(Object.entries(settings).filter(([key]) => key === panel || key === "timeline"));
  keepView({ name, panel, settings: own });
}

/** Keeps a view, in the place of one with this name. */
export const keepView = (view: Saved) => keep([...saved.value.filter((one) => one.name !== view.name), view]);

export const dropView = (name: string) => keep(saved.value.filter((one) => one.name !== name));

export const showView = (one: Saved) => look({ panel: one.panel, settings: { ...view.value.settings, ...one.settings } });
