/** One undo and redo for everything that is looked at: zoom, selection, filters, panel, settings, trace. */

import { signal } from "@preact/signals";
import { view, type View } from "./view.ts";

const MOST = 200;
/** Changes that come this quickly behind each other are one step, ms. */
const ONE_STEP = 350;

const before = signal<View[]>([]);
const after = signal<View[]>([]);
let held: View | null = null;
let moving = false;
let last = 0;

/** What makes two views different steps: not who a filter's number means, nor sizes of parts. */
const essence = (of: View) => {
  const { shell: _shell, ...settings } = of.settings;
  return JSON.stringify([of.trace, of.panel, of.beside, of.zoom, of.selection, of.filters.map(({ kind, value, not }) => [kind, value, not ?? false]), of.other, of.finding, settings]);
};

export const canUndo = () => before.value.length > 0;
export const canRedo = () => after.value.length > 0;

function go(from: typeof before, to: typeof before): void {
  const next = from.value[from.value.length - 1];
  if (!next) return;
  from.value = from.value.slice(0, -1);
  to.value = [...to.value, view.value];
  moving = true;
  view.value = next;
  moving = false;
}

export const undo = () => go(before, after);
export const redo = () => go(after, before);

/** Remembers steps from now on. */
export function followHistory(): void {
  view.subscribe((now) => {
    const was = held;
    held = now;
    if (!was || moving || essence(was) === essence(now)) return;
    const time = performance.now();
    const dragged = was.panel === now.panel && was.trace === now.trace && was.filters === now.filters && time - last < ONE_STEP;
    last = time;
    if (!dragged) before.value = [...before.value.slice(1 - MOST), was];
    if (after.value.length > 0) after.value = [];
  });
}
