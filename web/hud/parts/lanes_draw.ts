/** Draws lanes of thread states on a canvas; knows nothing of the page around it. */

import { css, font } from "../base/colors.ts";
import { duration } from "../../src/lib/format.ts";
import { moment } from "../base/value.ts";
import type { Range } from "../state/view.ts";
import type { Rows } from "../wire/rows.ts";
import type { PathPiece, StatesFacts, ThreadLane } from "../wire/types.ts";

export const RUN = 0;
export const READY = 1;
export const WAIT = 2;
export const UNKNOWN = 3;
export const STATES = ["running", "ready", "waiting", "unknown"];

export const LANE = 32;
const PAD = 5;
export const AXIS = 20;

/** The answer of `states`, in arrays that can be searched. */
export class Pieces {
  readonly lanes: ThreadLane[];
  readonly reasons: string[];
  readonly bucket: number | null;
  readonly range: Range;
  readonly wakeups: [number, number, number, number][];
  readonly wakeupsTotal: number;
  readonly fromThreads: number;
  readonly fromDpcs: number;
  readonly lane: Int32Array;
  readonly start: Float64Array;
  readonly dur: Float64Array;
  readonly state: Uint8Array;
  /** -1: none. */
  readonly reason: Int32Array;
  /** Where the pieces of each lane begin; one more at the end. */
  readonly first: number[];
  readonly rows: Rows;

  constructor(rows: Rows<StatesFacts>) {
    const { facts } = rows;
    this.rows = rows;
    this.lanes = facts.lanes;
    this.reasons = facts.reasons;
    this.bucket = facts.bucket_ns;
    this.range = facts.range;
    this.wakeups = facts.wakeups;
    this.wakeupsTotal = facts.wakeups_total;
    this.fromThreads = facts.from_threads;
    this.fromDpcs = facts.from_dpcs;
    const numbers = (name: string) => rows.column(name)?.values.map((cell) => (typeof cell === "number" ? cell : -1)) ?? [];
    this.lane = Int32Array.from(numbers("lane"));
    this.start = Float64Array.from(numbers("start"));
    this.dur = Float64Array.from(numbers("dur"));
    this.state = Uint8Array.from(numbers("state"));
    this.reason = Int32Array.from(numbers("reason"));
    this.first = this.lanes.map((_, lane) => {
      const at = this.lane.indexOf(lane);
      return at < 0 ? this.lane.length : at;
    });
    // A lane without pieces begins where the next one does.
    for (let lane = this.first.length - 2; lane >= 0; lane -= 1) this.first[lane] = Math.min(this.first[lane] ?? 0, this.first[lane + 1] ?? 0);
    this.first.push(this.lane.length);
  }

  get count(): number {
    return this.lane.length;
  }

  end(piece: number): number {
    return (this.start[piece] ?? 0) + (this.bucket ?? this.dur[piece] ?? 0);
  }

  /** The piece at a moment; in buckets that with most time. */
  at(lane: number, ns: number): number | null {
    let low = this.first[lane] ?? 0;
    const begin = low;
    let high = this.first[lane + 1] ?? low;
    const stop = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.start[middle] ?? 0) <= ns) low = middle + 1;
      else high = middle;
    }
    let found = low - 1;
    if (found < begin || found >= stop || ns >= this.end(found)) return null;
    for (let other = found - 1; this.bucket !== null && other >= begin && this.start[other] === this.start[found]; other -= 1) {
      if ((this.dur[other] ?? 0) > (this.dur[found] ?? 0)) found = other;
    }
    return found;
  }
}

export interface Scene {
  pieces: Pieces;
  range: Range;
  selection: Range | null;
  path: PathPiece[];
  arrows: boolean;
  focus: number | null;
  /** While it is dragged. */
  drag: Range | null;
}

function pattern(context: CanvasRenderingContext2D, ground: string, line: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const small = tile.getContext("2d");
  if (!small) return line;
  small.fillStyle = ground;
  small.fillRect(0, 0, 6, 6);
  small.fillStyle = line;
  small.fillRect(2, 2, 2, 2);
  return context.createPattern(tile, "repeat") ?? line;
}

export const height = (lanes: number) => lanes * LANE + AXIS;

export function draw(canvas: HTMLCanvasElement, scene: Scene): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const tall = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const { pieces, range } = scene;
  const text = css("--text");
  const line = css("--line");
  const accent = css("--accent");
  const scale = width / Math.max(1, range[1] - range[0]);
  const x = (ns: number) => (ns - range[0]) * scale;
  context.fillStyle = css("--card");
  context.fillRect(0, 0, width, tall);
  const ready = css("--ready");
  const unknown = pattern(context, css("--card"), css("--strong-line"));

  const room = LANE - 2 * PAD;
  const left = (piece: number) => Math.max(0, x(pieces.start[piece] ?? 0));
  const right = (piece: number) => Math.min(width, x(pieces.end(piece)));
  const paint = (piece: number, filled = 0) => {
    const state = pieces.state[piece] ?? UNKNOWN;
    const lane = pieces.lane[piece] ?? 0;
    // Buckets stand on whole pixels: what falls between two would look like waves.
    const whole = pieces.bucket !== null;
    const from = whole ? Math.floor(left(piece)) : left(piece);
    const wide = whole ? Math.ceil(right(piece)) - from : Math.max(state === RUN ? 1 : 0.5, right(piece) - from);
    context.fillStyle = state === RUN ? css("--user") : state === READY ? ready : state === WAIT ? css("--wait") : unknown;
    const top = lane * LANE + PAD;
    if (pieces.bucket === null) {
      // Height tells the state too: only what runs is tall.
      const part = state === RUN || state === READY ? 1 : 0.62;
      context.fillRect(from, top + (room * (1 - part)) / 2, wide, room * part);
      return 0;
    }
    const share = (pieces.dur[piece] ?? 0) / Math.max(1, Math.min(pieces.bucket, range[1] - (pieces.start[piece] ?? 0)));
    const tallPart = room * Math.min(1 - filled, share);
    context.fillRect(from, top + room * (1 - filled) - tallPart, Math.max(1, wide), tallPart);
    return filled + share;
  };
  if (pieces.bucket === null) {
    for (const wanted of [UNKNOWN, WAIT, READY, RUN]) {
      for (let piece = 0; piece < pieces.count; piece += 1) if (pieces.state[piece] === wanted) paint(piece);
    }
    // Long waits say what for.
    context.font = font(10);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = css("--t2");
    for (let piece = 0; piece < pieces.count; piece += 1) {
      const reason = pieces.reasons[pieces.reason[piece] ?? -1];
      const [from, to] = [left(piece), right(piece)];
      if (pieces.state[piece] !== WAIT || !reason || to - from < 96) continue;
      context.fillText(`${reason} ${duration(pieces.dur[piece] ?? 0)}`, (from + to) / 2, (pieces.lane[piece] ?? 0) * LANE + LANE / 2);
    }
    context.textAlign = "start";
  } else {
    let filled = 0;
    for (let piece = 0; piece < pieces.count; piece += 1) {
      if (piece > 0 && (pieces.start[piece] !== pieces.start[piece - 1] || pieces.lane[piece] !== pieces.lane[piece - 1])) filled = 0;
      filled = paint(piece, filled);
    }
  }
  context.strokeStyle = line;
  context.lineWidth = 1;
  for (let lane = 0; lane <= pieces.lanes.length; lane += 1) {
    context.beginPath();
    context.moveTo(0, lane * LANE + 0.5);
    context.lineTo(width, lane * LANE + 0.5);
    context.stroke();
  }
  drawPath(context, scene, x, width, text);
  if (scene.arrows) drawArrows(context, scene, x, text);
  const bottom = pieces.lanes.length * LANE;
  const band = scene.drag ?? scene.selection;
  if (band) {
    context.fillStyle = accent;
    context.globalAlpha = 0.14;
    context.fillRect(x(band[0]), 0, Math.max(1, x(band[1]) - x(band[0])), bottom);
    context.globalAlpha = 1;
    context.strokeStyle = accent;
    context.strokeRect(x(band[0]) + 0.5, 0.5, Math.max(1, x(band[1]) - x(band[0])), bottom - 1);
  }
  if (scene.focus !== null && scene.focus < pieces.count) {
    context.strokeStyle = text;
    context.lineWidth = 2;
    context.strokeRect(left(scene.focus), (pieces.lane[scene.focus] ?? 0) * LANE + 1, Math.max(2, right(scene.focus) - left(scene.focus)), LANE - 2);
  }
  drawAxis(context, range, width, bottom, css("--muted"));
}

/** The critical path: a line through the lanes; solid while it runs, dashed while it waits. */
function drawPath(context: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number, width: number, accent: string): void {
  if (scene.path.length === 0) return;
  const lanes = new Map(scene.pieces.lanes.map((lane, at) => [lane.thread.utid, at]));
  context.strokeStyle = accent;
  let before: [number, number] | null = null;
  // Latest first in the answer.
  for (let at = scene.path.length - 1; at >= 0; at -= 1) {
    const piece = scene.path[at];
    const lane = piece && lanes.get(piece.utid);
    if (!piece || lane === undefined) {
      before = null;
      continue;
    }
    const y = lane * LANE + LANE - 3;
    const [from, to] = [x(piece.start_ns), x(piece.start_ns + piece.dur_ns)];
    if (to < 0 || from > width) {
      before = null;
      continue;
    }
    context.lineWidth = 4;
    context.setLineDash(piece.kind === "run" ? [] : piece.kind === "ready" ? [6, 2] : [2, 3]);
    context.beginPath();
    context.moveTo(Math.max(0, from), y);
    context.lineTo(Math.min(width, Math.max(to, from + 1)), y);
    context.stroke();
    if (before && before[1] !== y && Math.abs(before[0] - from) < 2) {
      context.lineWidth = 1.5;
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(from, before[1]);
      context.lineTo(from, y);
      context.stroke();
    }
    before = [to, y];
  }
  context.setLineDash([]);
}

function drawArrows(context: CanvasRenderingContext2D, scene: Scene, x: (ns: number) => number, color: string): void {
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 1;
  for (const [ts, from, to] of scene.pieces.wakeups) {
    const at = x(ts);
    const down = to > from ? 1 : -1;
    const [a, b] = [from * LANE + LANE / 2, to * LANE + LANE / 2 - down * 4];
    context.beginPath();
    context.moveTo(at, a);
    context.lineTo(at, b);
    context.stroke();
    context.beginPath();
    context.moveTo(at, b + down * 5);
    context.lineTo(at - 3.5, b - down * 2);
    context.lineTo(at + 3.5, b - down * 2);
    context.fill();
  }
}

function drawAxis(context: CanvasRenderingContext2D, range: Range, width: number, top: number, color: string): void {
  const length = range[1] - range[0];
  const rough = length / Math.max(1, width / 120);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough) ?? rough;
  context.fillStyle = context.strokeStyle = color;
  context.font = font(10);
  context.textAlign = "center";
  context.textBaseline = "top";
  for (let tick = Math.ceil(range[0] / step) * step; tick < range[1]; tick += step) {
    const at = ((tick - range[0]) / length) * width;
    context.fillRect(at, top, 1, 4);
    if (at > 30 && at < width - 30) context.fillText(moment(tick, step), at, top + 5);
  }
}
