/** Which lanes stand where, as the panel brings them and the user set it. Pixels of the style sheet, from the top of the lanes. */

import { amount, visible } from "../../base/value.ts";
import { foundIn, phrase } from "../../state/finding.ts";
import type { Note } from "../../state/notes_of.ts";
import { wholeReport } from "../../state/view.ts";
import { shownOf } from "./catalog.ts";
import { peak, type Lanes, type Lane, type Mark } from "./model.ts";

export interface Settings {
  open: boolean;
  /** 0: as much as the panel leaves. */
  height: number;
  /** Lanes that are not shown, by id or kind. */
  hidden: string[];
  /** Lanes that are shown though the panel does not bring them. */
  shown: string[];
  /** Lanes that stand first, in this order. */
  pinned: string[];
  /** Blocks in the order that somebody gave them (`arrange.ts`); others follow. */
  order: string[];
  /** Heights of lanes that somebody set, by id. */
  heights: Record<string, number>;
  /** Headings that are closed. */
  closed: string[];
  /** What colours of processors mean. */
  color: "heat" | "process" | "mode";
  table: boolean;
}

export const DEFAULTS: Settings = { open: true, height: 0, hidden: ["disk:queue", "idle", "intervals"], shown: [], pinned: [], order: [], heights: {}, closed: [], color: "heat", table: false };

export interface Row {
  id: string;
  /** What moves with it. */
  block: string;
  title: string;
  /** Quieter, below or behind the title. */
  sub?: string;
  /** What the top of it stands for. */
  top?: string;
  y: number;
  height: number;
  /** null: a heading, which opens and closes. */
  lane: Lane | null;
  closed?: boolean;
  /** Processors are drawn as heat. */
  heat?: "busy" | "interrupts";
  /** Under a heading. */
  inner?: boolean;
}

/** What moves as one is a block: a lane, all processors, all lanes below a heading. */
const blockOf = (lane: Lane): string => (lane.kind === "cpu" ? "cpu" : lane.group ? `group ${lane.group}` : lane.id);

const LOWEST = 12;
const HIGHEST = 400;
export const inBounds = (height: number): number => Math.round(Math.max(LOWEST, Math.min(HIGHEST, Number(height) || 0)));

const HEIGHTS: Record<string, number> = { process: 62, memory: 26, faults: 20 };
const ORDER = ["notes", "findings", "marks", "delays", "focus", "process", "cpu", "ready"];
const LATER = ["disk:busy", "disk:bytes", "disk:queue", "network", "memory", "faults", "frequency", "idle", "intervals"];

const rank = (lane: Lane) => {
  const id = lane.kind === "cpu" ? "cpu" : lane.id;
  if (lane.kind === "track") return ORDER.length;
  const at = ORDER.indexOf(id);
  return at >= 0 ? at : ORDER.length + 1 + Math.max(0, LATER.indexOf(id));
};

/** Levels of a lane of findings: more would take the place of what they are about. */
const LEVELS = 3;
const LEVEL = 14;
const HEADING = 20;

/** Puts marks that overlap on levels; those for which there is no free one are thin lines on the last. The worst come first. */
function stack(marks: Mark[]): void {
  const rank = ["critical", "warning", "notice", "info"];
  marks.sort((a, b) => rank.indexOf(a.what) - rank.indexOf(b.what) || a.from - b.from);
  const placed: Mark[] = [];
  for (const mark of marks) {
    let level = 0;
    while (level < LEVELS && placed.some((one) => one.level === level && one.from < mark.to && mark.from < one.to)) level += 1;
    mark.level = Math.min(level, LEVELS - 1);
    mark.thin = level === LEVELS;
    if (!mark.thin) placed.push(mark);
  }
}

/** Height of one level of a lane of marks. */
export const levelOf = (row: Row): number => row.height / (1 + Math.max(0, ...(row.lane?.marks ?? []).map((mark) => mark.level ?? 0)));

/** All lanes that could be shown. */
export function withFindings(data: Lanes, findings: Lanes["findings"], notes: Note[]): Lane[] {
  const known = new Map(wholeReport.value ? foundIn(wholeReport.value).map((one) => [one.id, one]) : []);
  /** Who and what, without who makes it. */
  const text = (id: string, headline: string) => {
    const found = known.get(id);
    return found ? `${found.hit.culprit}: ${phrase(found)}` : headline;
  };
  const marks = (findings ?? []).flatMap((one): Mark[] =>
    one.range ? [{ from: one.range[0], to: one.range[1], text: text(`${one.finding}#${one.hit}`, one.headline || one.title), what: one.severity, upid: null, count: 1, finding: { id: one.finding, hit: one.hit, severity: one.severity } }] : [],
  );
  const lanes = data.lanes.filter((lane) => lane.kind !== "lost" && (lane.series.length > 0 || lane.marks.length > 0));
  if (notes.length > 0) {
    const written = notes.map((one): Mark => ({ from: one.at, to: one.to ?? one.at, text: one.text, what: "note", upid: null, count: 1 }));
    lanes.unshift({ id: "notes", kind: "notes", title: "Notes", unit: "", shape: "marks", full: 0, cpu: null, source: "", sql: "", series: [], marks: written });
  }
  if (marks.length === 0) return lanes;
  stack(marks);
  return [{ id: "findings", kind: "findings", title: "Findings", unit: "", shape: "marks", full: 0, cpu: null, source: "", sql: "", series: [], marks }, ...lanes];
}

const ALWAYS = ["notes", "findings", "marks", "process", "track"];

/** Whether a lane stands there: the user's word counts more than the panel's. */
export function isShown(lane: Lane, settings: Settings, panel: string): boolean {
  const listed = (list: string[]) => list.includes(lane.id) || list.includes(lane.kind);
  if (listed(settings.shown)) return true;
  if (listed(settings.hidden)) return false;
  const { lanes, tracks } = shownOf(panel);
  // Until the new panel's tracks are there, those of the one before are not shown in their place.
  if (lane.kind === "track") return tracks.some((track) => track.id === lane.track);
  // The first panel lists findings with their time.
  if (lane.kind === "findings" && panel === "overview") return false;
  return !lanes || ALWAYS.includes(lane.kind) || listed(lanes) || lanes.includes(lane.id.split(":")[0] ?? "");
}

/** Height of a processor's line: all of them in sight if that can be. */
const tallOf = (cpus: number) => (cpus <= 4 ? 14 : cpus <= 8 ? 9 : cpus <= 16 ? 8 : cpus <= 32 ? 6 : cpus <= 64 ? 4 : cpus <= 128 ? 2 : 1);

export function layout(lanes: Lane[], data: Lanes, settings: Settings, panel: string): Row[] {
  const { places } = data;
  const shown = lanes.filter((lane) => isShown(lane, settings, panel));
  const pin = (lane: Lane) => {
    const at = settings.pinned.indexOf(lane.id);
    return at < 0 ? settings.pinned.length : at;
  };
  const place_ = (lane: Lane) => {
    const at = settings.order.indexOf(blockOf(lane));
    return at < 0 ? settings.order.length : at;
  };
  const sorted = [...shown].sort((a, b) => pin(a) - pin(b) || place_(a) - place_(b) || rank(a) - rank(b) || (a.cpu ?? 0) - (b.cpu ?? 0));
  const cpus = sorted.filter((lane) => lane.kind === "cpu");
  const tall = tallOf(cpus.length);
  const place = new Map(places.map(([cpu, group, node]) => [cpu, node !== null && places.some((one) => one[2] !== node) ? `Node ${node}` : group !== null && places.some((one) => one[1] !== group) ? `Group ${group}` : "Processors"]));
  const heat = settings.color === "heat" ? (panel === "interrupts" ? "interrupts" : "busy") : null;
  const rows: Row[] = [];
  let y = 0;
  let heading: string | null = null;
  const open = (id: string, block: string, title: string, sub: string): boolean => {
    const closed = settings.closed.includes(id);
    rows.push({ id, block, title, sub, y, height: HEADING, lane: null, closed });
    y += HEADING + 1;
    return !closed;
  };
  let inside = true;
  for (const lane of sorted) {
    const pinned = settings.pinned.includes(lane.id);
    if (lane.kind === "cpu") {
      const mine = place.get(lane.cpu) ?? "Processors";
      if (mine !== heading && !pinned) {
        heading = mine;
        const count = cpus.filter((one) => (place.get(one.cpu) ?? "Processors") === mine).length;
        const about = heat === "interrupts" ? "DPC + ISR" : heat === "busy" ? "Busy" : "Running";
        inside = open(mine, "cpu", mine === "Processors" ? `${about} by ${heat === "interrupts" ? "CPU" : "processor"}` : `${mine}: ${heat === "interrupts" ? about : about.toLowerCase()}`, `${count}`);
      }
      if (!inside && !pinned) continue;
      rows.push({ id: lane.id, block: "cpu", title: String(lane.cpu ?? lane.title), y, height: tall, lane, ...(heat ? { heat } : {}) });
      y += tall + (tall > 3 ? 1 : 0);
      if (lane === cpus[cpus.length - 1]) y += 4;
      continue;
    }
    if (lane.group && lane.group !== heading && !pinned) {
      heading = lane.group;
      inside = open(`group ${lane.group}`, `group ${lane.group}`, visible(lane.group), "");
    }
    if (lane.group && !inside && !pinned) continue;
    const levels = 1 + Math.max(0, ...lane.marks.map((mark) => mark.level ?? 0));
    const chosen = settings.heights[lane.id];
    const height = lane.shape === "marks" ? LEVEL * levels + 2 : chosen !== undefined ? inBounds(chosen) : (HEIGHTS[lane.id] ?? (lane.group ? 15 : 26));
    const total = lane.series.reduce((sum, band) => sum + (band.band === "idle" ? 0 : band.total), 0);
    const sub = lane.shape === "marks" ? (lane.marks.length > 1 ? String(lane.marks.length) : "") : lane.id === "process" ? `${places.length || cpus.length} processors` : lane.shape === "level" ? "" : amount(total, lane.unit);
    rows.push({ id: lane.id, block: pinned ? lane.id : blockOf(lane), title: visible(lane.id === "process" ? "CPU by process" : lane.group ? lane.title.replace(` · ${lane.group}`, "") : lane.title), sub, y, height, lane, ...(lane.id === "process" ? { top: topOf(data, lane) } : {}), ...(lane.group ? { inner: true } : {}) });
    y += height + 4;
  }
  return rows;
}

/** What the top of the lane of all processes stands for: processors. */
function topOf(data: Lanes, lane: Lane): string {
  const full = peak(data, lane);
  return lane.unit === "ns" && full > 0 ? String(Math.round(full / data.bucket_ns)) : "";
}

export const heightOf = (rows: Row[]): number => {
  const last = rows[rows.length - 1];
  return last ? last.y + last.height + 6 : 0;
};
