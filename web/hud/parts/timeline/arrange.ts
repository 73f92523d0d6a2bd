/** Order and heights of tracks as somebody arranges them, block by block. */

import { say } from "../live.tsx";
import { set } from "../../state/view.ts";
import { inBounds, type Row, type Settings } from "./layout.ts";

/** Blocks from above, with where they begin and end. */
export function blocks(rows: Row[]): { id: string; title: string; top: number; bottom: number }[] {
  const out: { id: string; title: string; top: number; bottom: number }[] = [];
  for (const row of rows) {
    const last = out[out.length - 1];
    if (last?.id === row.block) last.bottom = row.y + row.height;
    // Nodes of processors have a heading each, and move together.
    else if (!out.some((one) => one.id === row.block)) out.push({ id: row.block, title: row.title, top: row.y, bottom: row.y + row.height });
  }
  return out;
}

/** Where a block lands that is let go at a height: its number among the others. */
export const landing = (rows: Row[], block: string, y: number): number => blocks(rows).filter((one) => one.id !== block && (one.top + one.bottom) / 2 < y).length;

/** Puts a block at a place among the others. */
export function moveTo(rows: Row[], settings: Settings, block: string, place: number): void {
  const all = blocks(rows).map((one) => one.id);
  const order = all.filter((one) => one !== block);
  const at = Math.max(0, Math.min(order.length, place));
  order.splice(at, 0, block);
  if (order.join() === all.join()) return;
  // What other panels bring keeps its order.
  set<Settings>("timeline", { order: [...order, ...settings.order.filter((one) => !order.includes(one))], pinned: settings.pinned.filter((one) => one !== block) });
  say(`${rows.find((row) => row.block === block)?.title ?? ""}: ${at + 1} of ${order.length}`);
}

export function moveBy(rows: Row[], settings: Settings, block: string, by: number): void {
  moveTo(rows, settings, block, blocks(rows).findIndex((one) => one.id === block) + by);
}

/** Gives a lane a height. */
export function setHeight(settings: Settings, id: string, height: number): void {
  set<Settings>("timeline", { heights: { ...settings.heights, [id]: inBounds(height) } });
}
