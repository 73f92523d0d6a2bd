/** Which lanes stand where, as the user set it. Pixels of the style sheet, from the top of the lanes. */

import type { Lanes, Lane, Mark } from "./model.ts";

export interface Settings {
  open: boolean;
  height: number;
  /** Lanes that are not shown, by id or kind. */
  hidden: string[];
  /** Lanes that stand first, in this order. */
  pinned: string[];
  /** Groups of processors that are closed. */
  closed: string[];
  /** What colours of processors mean. */
  color: "process" | "mode";
  table: boolean;
}

export const DEFAULTS: Settings = { open: true, height: 208, hidden: ["disk:queue", "idle", "intervals"], pinned: [], closed: [], color: "process", table: false };

export interface Row {
  id: string;
  title: string;
  y: number;
  height: number;
  /** null: a heading of processors, which opens and closes. */
  lane: Lane | null;
  closed?: boolean;
}

const HEIGHTS: Record<string, number> = { process: 28, "disk:busy": 18, "disk:bytes": 18, "disk:queue": 18, network: 18, memory: 22, ready: 18, faults: 16, frequency: 18, idle: 18 };
const ORDER = ["findings", "marks", "delays", "focus", "process", "cpu", "ready", "disk:busy", "disk:bytes", "disk:queue", "network", "memory", "faults", "frequency", "idle", "intervals"];

const rank = (lane: Lane) => {
  const at = ORDER.indexOf(lane.kind === "cpu" ? "cpu" : lane.id);
  return at < 0 ? ORDER.length : at;
};

/** Levels of a lane of findings: more would take the place of what they are about. */
const LEVELS = 3;
const LEVEL = 12;

/** Puts marks that overlap on levels; on the last one they may overlap. The worst come first. */
function stack(marks: Mark[]): void {
  const rank = ["critical", "warning", "notice", "info"];
  marks.sort((a, b) => rank.indexOf(a.what) - rank.indexOf(b.what) || a.from - b.from);
  const placed: Mark[] = [];
  for (const mark of marks) {
    let level = 0;
    while (level < LEVELS - 1 && placed.some((one) => one.level === level && one.from < mark.to && mark.from < one.to)) level += 1;
    mark.level = level;
    placed.push(mark);
  }
}

/** Height of one level of a lane of marks. */
export const levelOf = (row: Row): number => row.height / (1 + Math.max(0, ...(row.lane?.marks ?? []).map((mark) => mark.level ?? 0)));

/** All lanes that could be shown. */
export function withFindings(data: Lanes, findings: Lanes["findings"]): Lane[] {
  const marks = (findings ?? []).flatMap((one): Mark[] =>
    one.range ? [{ from: one.range[0], to: one.range[1], text: one.headline || one.title, what: one.severity, upid: null, count: 1, finding: { id: one.finding, hit: one.hit, severity: one.severity } }] : [],
  );
  const lanes = data.lanes.filter((lane) => lane.kind !== "lost" && (lane.series.length > 0 || lane.marks.length > 0));
  if (marks.length === 0) return lanes;
  stack(marks);
  return [{ id: "findings", kind: "findings", title: "Findings", unit: "", shape: "marks", full: 0, cpu: null, source: "", sql: "", series: [], marks }, ...lanes];
}

export function layout(lanes: Lane[], places: Lanes["places"], settings: Settings): Row[] {
  const shown = lanes.filter((lane) => !settings.hidden.includes(lane.id) && !settings.hidden.includes(lane.kind));
  const pin = (lane: Lane) => {
    const at = settings.pinned.indexOf(lane.id);
    return at < 0 ? settings.pinned.length : at;
  };
  const sorted = [...shown].sort((a, b) => pin(a) - pin(b) || rank(a) - rank(b) || (a.cpu ?? 0) - (b.cpu ?? 0));
  const cpus = sorted.filter((lane) => lane.kind === "cpu").length;
  const tall = cpus <= 4 ? 16 : cpus <= 8 ? 10 : cpus <= 16 ? 9 : cpus <= 32 ? 5 : 3;
  const place = new Map(places.map(([cpu, group, node]) => [cpu, node !== null && places.some((one) => one[2] !== node) ? `Node ${node}` : group !== null && places.some((one) => one[1] !== group) ? `Group ${group}` : "Processors"]));
  const rows: Row[] = [];
  let y = 0;
  let node: string | null = null;
  for (const lane of sorted) {
    if (lane.kind === "cpu") {
      const mine = place.get(lane.cpu) ?? "Processors";
      const closed = settings.closed.includes(mine);
      if (mine !== node && !settings.pinned.includes(lane.id)) {
        node = mine;
        const count = sorted.filter((one) => one.kind === "cpu" && (place.get(one.cpu) ?? "Processors") === mine).length;
        if (cpus > 8 || mine !== "Processors" || closed) {
          rows.push({ id: mine, title: `${mine}: ${count} CPUs`, y, height: 14, lane: null, closed });
          y += 15;
        }
      }
      if (closed && !settings.pinned.includes(lane.id)) continue;
      rows.push({ id: lane.id, title: lane.title, y, height: tall, lane });
      y += tall + (tall > 4 ? 1 : 0);
    } else {
      const levels = 1 + Math.max(0, ...lane.marks.map((mark) => mark.level ?? 0));
      const height = lane.shape === "marks" ? LEVEL * levels + 1 : (HEIGHTS[lane.id] ?? 18);
      rows.push({ id: lane.id, title: lane.title, y, height, lane });
      y += height + 3;
    }
  }
  return rows;
}

export const heightOf = (rows: Row[]): number => {
  const last = rows[rows.length - 1];
  return last ? last.y + last.height + 2 : 0;
};
