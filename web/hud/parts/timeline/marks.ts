/** Single things on the time axis: findings, marks, notes, delays. */

import { colorOf } from "../../base/colors.ts";
import { visible } from "../../base/value.ts";
import { plainName, type Colors } from "./colors.ts";
import { levelOf, type Row } from "./layout.ts";
import type { Mark } from "./model.ts";

const LETTER: Record<string, string> = { critical: "◆", warning: "▲", notice: "○", info: "•" };

/** Where a mark is drawn: at least as wide as a hand can hit. */
export function markBox(mark: Mark, x: (ns: number) => number): [number, number] {
  const [a, b] = [x(mark.from), x(mark.to)];
  return b - a < 5 ? [(a + b) / 2 - 2.5, (a + b) / 2 + 2.5] : [a, b];
}

/** As much of a text as there is room for. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  const wide = context.measureText(text).width;
  if (wide <= room) return text;
  let length = Math.floor((text.length * room) / wide);
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

/** Marks stand on their levels; those that overlap there are drawn over each other, and the first one has its text. */
export function drawMarks(context: CanvasRenderingContext2D, row: Row, top: number, f: { width: number; finding: string | null }, x: (ns: number) => number, c: Colors): void {
  const tall = levelOf(row);
  const free: number[] = [];
  for (const mark of row.lane?.marks ?? []) {
    const [a, b] = markBox(mark, x);
    if (b < 0 || a > f.width) continue;
    const level = mark.level ?? 0;
    // What found no level of its own is a line at the foot of the last.
    const y = top + level * tall + (mark.thin ? tall - 2 : 0);
    const high = mark.thin ? 2 : tall - 1;
    const moment = mark.from === mark.to;
    const severity = mark.finding?.severity;
    const chosen = mark.finding && f.finding === `${mark.finding.id}#${mark.finding.hit}`;
    const color = severity ? (c.severity[severity] ?? c.muted) : mark.what === "delay" ? (c.severity["warning"] ?? c.text) : mark.what === "focus" ? colorOf(plainName(mark.text.replace(/^focus: /, "")), c.dark) : c.accent;
    const [left, right] = [Math.max(-2, a), Math.min(b, f.width + 2)];
    context.globalAlpha = moment || mark.thin ? 1 : chosen ? 0.5 : 0.16;
    context.fillStyle = color;
    if (moment) {
      context.beginPath();
      context.moveTo((a + b) / 2 - 4, y);
      context.lineTo((a + b) / 2 + 4, y);
      context.lineTo((a + b) / 2, y + tall);
      context.fill();
    } else context.fillRect(left, y, right - left, high);
    context.globalAlpha = 1;
    if (mark.thin) continue;
    if (!moment) context.fillRect(left, y, 3, high);
    if (chosen && !moment) {
      context.strokeStyle = color;
      context.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), tall - 2);
    }
    const start = Math.max(a, 0) + (moment ? 9 : 7);
    const text = `${severity ? `${LETTER[severity] ?? ""} ` : ""}${visible(mark.text)}${mark.count > 1 ? ` (${mark.count})` : ""}`;
    const room = moment ? 140 : right - start - 2;
    const before = free[level] ?? Number.NEGATIVE_INFINITY;
    if (start > before && room > 14) {
      const called = fitted(context, text, room);
      const wide = context.measureText(called).width;
      // At the right end a flag has its text before it, if there is room.
      const left = a - 3 - wide;
      const at = moment && start + wide > f.width && left > before ? left : start;
      context.fillStyle = c.text;
      context.fillText(called, at, y + tall / 2 + 0.5);
      free[level] = moment ? start + wide : right;
    }
  }
}
