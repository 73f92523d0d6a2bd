/**
 * Drawing. Numbers become a picture once, one pixel of it for each bucket; frames only stretch that picture, so that panning and zooming
 * stay quick however many lanes there are. Axis, marks and selection are drawn anew in each frame.
 */

import { isGuard } from "../../base/colors.ts";
import { moment } from "../../base/value.ts";
import type { Filter, Range } from "../../state/view.ts";
import { bandColor, type Colors } from "./colors.ts";
import { drawGhost, type Ghost } from "./ghost.ts";
import { heat } from "./heat.ts";
import type { Row, Settings } from "./layout.ts";
import { drawMarks } from "./marks.ts";
import { pixel } from "./pixel.ts";
import { peak, type Band, type Lane, type Lanes } from "./model.ts";

/** Stripes, so that meaning is not by colour alone. */
export function stripes(context: CanvasRenderingContext2D, color: string, back: string | null): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const draw = tile.getContext("2d");
  if (!draw) return color;
  if (back) {
    draw.fillStyle = back;
    draw.fillRect(0, 0, 6, 6);
  }
  draw.strokeStyle = color;
  draw.lineWidth = 1.6;
  draw.beginPath();
  for (const x of [-6, 0, 6]) {
    draw.moveTo(x - 1, 7);
    draw.lineTo(x + 7, -1);
  }
  draw.stroke();
  return context.createPattern(tile, "repeat") ?? color;
}

const faded = (band: Band, filters: Filter[]) => {
  const named = filters.filter((filter) => filter.kind === "process");
  const is = (filter: Filter) => filter.value === band.upid;
  const [wanted, others] = [named.filter((filter) => !filter.not), named.filter((filter) => filter.not)];
  return named.length > 0 && band.upid !== null && ((wanted.length > 0 && !wanted.some(is)) || others.some(is));
};

/** Part of the way from one pixel's colour to another's. */
function mixed(from: number, to: number, share: number): number {
  let out = 0xff000000;
  for (const shift of [0, 8, 16]) {
    const [a, b] = [(from >>> shift) & 255, (to >>> shift) & 255];
    out |= Math.round(a + (b - a) * share) << shift;
  }
  return out >>> 0;
}

/** The picture of all lanes' numbers. */
export function picture(data: Lanes, rows: Row[], height: number, scale: number, settings: Settings, filters: Filter[], c: Colors): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, data.count);
  canvas.height = Math.max(1, Math.ceil(height * scale));
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const place = (row: Row): [number, number] => [Math.round(row.y * scale), Math.max(1, Math.round(row.height * scale))];
  for (const row of rows) {
    if (!row.lane || row.lane.shape === "marks") continue;
    const [top, tall] = place(row);
    if (row.heat) {
      heat(pixels, canvas.width, data, row.lane, top, tall, row.heat);
      continue;
    }
    // Only what has a fixed whole has an empty part: elsewhere the ground says nothing.
    if (row.lane.full > 0 && row.height < 40) pixels.fill(pixel(c.idle), top * canvas.width, (top + tall) * canvas.width);
    if (row.lane.shape !== "level") bars(pixels, canvas.width, data, row.lane, top, tall, settings, filters, c);
  }
  context.putImageData(image, 0, 0);
  for (const row of rows) if (row.lane?.shape === "level") lines(context, data, row.lane, ...place(row), c);
  return canvas;
}

function lines(context: CanvasRenderingContext2D, data: Lanes, lane: Lane, top: number, tall: number, c: Colors): void {
  const full = peak(data, lane);
  if (full <= 0) return;
  lane.series.forEach((band, number) => {
    context.strokeStyle = bandColor(band, number, c);
    context.lineWidth = 1.5;
    context.setLineDash(number % 3 === 1 ? [5, 2] : number % 3 === 2 ? [2, 2] : []);
    context.beginPath();
    for (let at = band.from; at < band.to; at += 1) {
      const x = data.buckets[at] ?? 0;
      const y = top + tall - ((data.values[at] ?? 0) / full) * (tall - 2) - 1;
      if (at === band.from) context.moveTo(x, y);
      else context.lineTo(x, y);
      context.lineTo(x + 1, y);
    }
    context.stroke();
  });
}

/** Bars on top of each other, written as pixels: thousands of small rectangles would cost frames. */
function bars(pixels: Uint32Array, width: number, data: Lanes, lane: Lane, top: number, tall: number, settings: Settings, filters: Filter[], c: Colors): void {
  const full = peak(data, lane);
  if (full <= 0) return;
  const { buckets, values } = data;
  const modes = lane.kind === "cpu" && settings.color === "mode";
  const sums = new Float64Array(data.count);
  const over = new Float64Array(data.count);
  const back = pixel(c.idle);
  lane.series.forEach((band, number) => {
    const interrupt = band.band === "dpc" || band.band === "isr";
    const mode = band.band === "kernel" || band.band === "user";
    const unknown = band.band === "unknown";
    const guard = !interrupt && isGuard(band.name);
    if (band.band === "idle" || (mode ? !modes : modes && !interrupt && !unknown)) return;
    // Interrupts are part of the runs below, unless samples tell.
    const base = interrupt && lane.source !== "sample" ? over : sums;
    const plain = pixel(bandColor(band, number, c));
    const color = faded(band, filters) ? mixed(back, plain, 0.25) : plain;
    const dark = mixed(color, 0xff000000, 0.35);
    for (let at = band.from; at < band.to; at += 1) {
      const bucket = buckets[at] ?? 0;
      const sum = base[bucket] ?? 0;
      const next = Math.min(full, sum + (values[at] ?? 0));
      base[bucket] = next;
      const low = Math.round((sum / full) * tall);
      const exact = (next / full) * tall;
      // What is small still shows: a paler pixel, or one of the interrupts'.
      const high = Math.max(Math.round(exact), interrupt ? low + 1 : 0);
      let place = (top + tall - 1 - low) * width + bucket;
      for (let y = low; y < high && y < tall; y += 1, place -= width) {
        // Stripes, so that meaning is not by colour alone.
        if (unknown && (y + bucket) % 4 !== 0) continue;
        pixels[place] = guard && (y + bucket) % 5 < 2 ? dark : color;
      }
      if (high === low && sum === 0 && exact > 0.05) pixels[place] = mixed(back, color, Math.min(1, exact + 0.2));
    }
  });
}

export const OVERVIEW = 12;
export const AXIS = 18;
export const HEAD = OVERVIEW + AXIS + 2;

const MINUTE = 60e9;
/** Steps of the axis in minutes. */
const MINUTES = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1440];

/** Steps of the axis: 1, 2, 5 times a power of ten, and whole minutes where these are long. */
export function step(span: number, width: number): number {
  const least = (span / Math.max(1, width)) * 90;
  if (least > 20e9) return MINUTE * (MINUTES.find((minutes) => minutes * MINUTE >= least) ?? 1440 * Math.ceil(least / (1440 * MINUTE)));
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return ten * (least <= ten ? 1 : least <= 2 * ten ? 2 : least <= 5 * ten ? 5 : 10);
}

export interface Frame {
  width: number;
  height: number;
  scale: number;
  scroll: number;
  shown: Range;
  whole: Range;
  selection: Range | null;
  cursor: number | null;
  rows: Row[];
  focus: string | null;
  data: Lanes | null;
  image: HTMLCanvasElement | null;
  overview: HTMLCanvasElement | null;
  finding: string | null;
  ghosts: ReadonlyMap<string, Ghost>;
}

export function frame(context: CanvasRenderingContext2D, f: Frame, c: Colors): void {
  const { width, height, scale, shown } = f;
  const [from, to] = shown;
  const x = (ns: number) => ((ns - from) / (to - from)) * width;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11px ${c.font}`;
  context.textBaseline = "middle";
  // Lanes.
  context.save();
  context.beginPath();
  context.rect(0, HEAD, width, height - HEAD);
  context.clip();
  if (f.image && f.data) {
    const end = f.data.start_ns + f.data.bucket_ns * f.data.count;
    const [left, right] = [x(f.data.start_ns), x(end)];
    // Only the part in sight: stretching what nobody sees costs the same.
    const a = Math.max(0, ((0 - left) / (right - left)) * f.image.width);
    const b = Math.min(f.image.width, ((width - left) / (right - left)) * f.image.width);
    if (b > a) {
      const top = f.scroll * scale;
      const tall = Math.min(f.image.height - top, (height - HEAD) * scale);
      const at = (px: number) => left + (px / f.image!.width) * (right - left);
      context.imageSmoothingEnabled = b - a > width * scale;
      if (tall > 0) context.drawImage(f.image, a, top, b - a, tall, at(a), HEAD, at(b) - at(a), tall / scale);
    }
  }
  for (const row of f.rows) {
    const y = HEAD + row.y - f.scroll;
    if (y + row.height < HEAD || y > height) continue;
    if (row.lane === null) {
      context.fillStyle = c.sunken;
      context.fillRect(0, y, width, row.height + 1);
    }
    if (row.lane?.shape === "marks") drawMarks(context, row, y, f, x, c);
    const ghost = f.ghosts.get(row.id);
    if (ghost && row.lane && f.data) drawGhost(context, ghost, x, y, row.height, (row.lane.kind === "track" ? f.data.bucket_ns : row.lane.full) / (peak(f.data, row.lane) || 1), c.text, c.card);
    if (row.id === f.focus) {
      context.strokeStyle = c.accent;
      context.setLineDash([3, 2]);
      context.strokeRect(0.5, y - 0.5, width - 1, row.height + 1);
      context.setLineDash([]);
    }
  }
  const lost = f.data?.lanes.find((lane) => lane.kind === "lost");
  if (lost && lost.marks.length > 0) {
    context.fillStyle = stripes(context, c.lost, null);
    for (const mark of lost.marks) {
      const [a, b] = [x(mark.from), x(mark.to)];
      if (b < 0 || a > width) continue;
      context.fillRect(a, HEAD, Math.max(1.5, b - a), height - HEAD);
      if (b - a > 90) label(context, "events missing", Math.max(2, a + 3), HEAD + 8, c);
    }
  }
  context.restore();
  drawAxis(context, f, x, c);
  drawOverview(context, f, c);
  if (f.selection) {
    const [a, b] = [x(f.selection[0]), x(f.selection[1])];
    context.globalAlpha = 0.16;
    context.fillStyle = c.accent;
    context.fillRect(a, OVERVIEW + 1, Math.max(1, b - a), height);
    context.globalAlpha = 1;
    context.fillRect(a - 0.5, OVERVIEW + 1, 1.5, height);
    context.fillRect(b - 0.5, OVERVIEW + 1, 1.5, height);
  }
  if (f.cursor !== null && f.cursor >= from && f.cursor <= to) {
    context.fillStyle = c.text;
    context.globalAlpha = 0.6;
    context.fillRect(x(f.cursor), OVERVIEW + 1, 1, height);
    context.globalAlpha = 1;
  }
}

function label(context: CanvasRenderingContext2D, text: string, x: number, y: number, c: Colors): void {
  const wide = context.measureText(text).width;
  context.fillStyle = c.card;
  context.globalAlpha = 0.85;
  context.fillRect(x - 2, y - 6, wide + 4, 12);
  context.globalAlpha = 1;
  context.fillStyle = c.text;
  context.fillText(text, x, y);
}

function drawAxis(context: CanvasRenderingContext2D, f: Frame, x: (ns: number) => number, c: Colors): void {
  const [from, to] = f.shown;
  const by = step(to - from, f.width);
  context.fillStyle = c.muted;
  for (let ns = Math.ceil(from / by) * by; ns < to; ns += by) {
    const at = x(ns);
    context.globalAlpha = 0.14;
    context.fillRect(at, OVERVIEW + AXIS - 4, 1, f.height);
    context.globalAlpha = 1;
    const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(by))));
    const text = by >= MINUTE ? `${Math.round(ns / MINUTE)} min` : `${(ns / 1e9).toFixed(digits)} s`;
    if (at + context.measureText(text).width + 4 < f.width) context.fillText(text, at + 3, OVERVIEW + AXIS / 2 + 1);
  }
}

function drawOverview(context: CanvasRenderingContext2D, f: Frame, c: Colors): void {
  const [first, end] = f.whole;
  const x = (ns: number) => ((ns - first) / (end - first)) * f.width;
  context.fillStyle = c.idle;
  context.fillRect(0, 0, f.width, OVERVIEW);
  context.imageSmoothingEnabled = true;
  if (f.overview) context.drawImage(f.overview, 0, 0, f.width, OVERVIEW);
  const [a, b] = [x(f.shown[0]), x(f.shown[1])];
  context.fillStyle = c.card;
  context.globalAlpha = 0.6;
  context.fillRect(0, 0, a, OVERVIEW);
  context.fillRect(b, 0, f.width - b, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = c.accent;
  context.lineWidth = 1.5;
  context.strokeRect(Math.min(a, f.width - 3) + 0.75, 0.75, Math.max(3, b - a) - 1.5, OVERVIEW - 1.5);
  context.lineWidth = 1;
  if (f.selection) {
    context.fillStyle = c.accent;
    context.fillRect(x(f.selection[0]), OVERVIEW - 3, Math.max(2, x(f.selection[1]) - x(f.selection[0])), 3);
  }
}

/** A picture of one lane for the strip of the whole trace. */
export function strip(data: Lanes, c: Colors): HTMLCanvasElement | null {
  const lane = data.lanes.find((one) => one.kind === "process") ?? data.lanes.find((one) => one.shape !== "marks");
  if (!lane) return null;
  const row: Row = { id: lane.id, block: "", title: "", y: 0, height: OVERVIEW, lane };
  return picture(data, [row], OVERVIEW, 2, { color: "process" } as Settings, [], c);
}

/** A moment as the axis and readers of the screen have it. */
export const at = (ns: number, shown: Range) => moment(ns, (shown[1] - shown[0]) / 1000);
