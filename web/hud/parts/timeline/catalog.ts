/** Which lanes and tracks stand on the time axis above each panel: those that belong to what the panel shows. */

import { set, setting, table } from "../../state/view.ts";

export interface Track {
  id: string;
  title: string;
  table: string;
  /** Column by which there are bands, or lines if they stand apart. */
  by?: string;
  /** What is added up; rows are counted if nothing is. */
  sum?: string;
  where?: { column: string; op: string; value: unknown }[];
  /** The largest have a line each, under a heading by `under`. */
  apart?: number;
  under?: string;
  /** Colour of all of it. */
  color?: string;
  /** Tables of more rows are too slow to add up as one pans. */
  most?: number;
}

const gc: Track = { id: "gc", title: "GC pauses", table: "clr_gc", sum: "pause_ns", by: "upid" };
const filter: Track = { id: "filter", title: "Held by filters", table: "minifilter", sum: "dur_ns", by: "module" };
const dpc: Track = { id: "dpc", title: "DPC", table: "dpc", sum: "exclusive_ns", by: "module" };
const isr: Track = { id: "isr", title: "ISR", table: "isr", sum: "exclusive_ns", by: "module", color: "--isr" };
const interrupts: Track = { ...dpc, by: "kind", title: "DPC time", color: "--dpc" };
const threads: Track = { id: "threads", title: "Threads", table: "sample", sum: "weight_ns", by: "utid", under: "upid", apart: 6, where: [{ column: "upid.pid", op: "ne", value: 0 }], most: 20_000_000 };
const files: Track = { id: "files", title: "File time", table: "file_io", sum: "dur_ns", by: "upid" };
const fileOps: Track = { id: "file ops", title: "File operations", table: "file_io", by: "op" };
const events: Track = { id: "events", title: "Events", table: "event", by: "provider", most: 4_000_000 };

interface Shown {
  /** Kinds of lanes; all unless given. */
  lanes?: string[];
  tracks: Track[];
}

const SHOWN: Record<string, Shown> = {
  overview: { tracks: [threads, filter, gc, interrupts] },
  stacks: { lanes: ["process", "focus"], tracks: [threads] },
  precise: { lanes: ["process", "cpu", "ready"], tracks: [] },
  interrupts: { lanes: ["process", "cpu"], tracks: [dpc, isr] },
  threads: { lanes: ["process", "ready"], tracks: [threads] },
  processes: { lanes: ["process", "focus"], tracks: [threads] },
  files: { lanes: ["process"], tracks: [files, fileOps, filter] },
  minifilter: { lanes: ["process"], tracks: [filter, files] },
  disk: { lanes: ["process", "disk"], tracks: [{ id: "disk by process", title: "Disk by process", table: "disk_io", sum: "size_bytes", by: "upid" }] },
  network: { lanes: ["process", "network"], tracks: [{ id: "network by process", title: "By process", table: "network", sum: "size_bytes", by: "upid" }] },
  registry: { lanes: ["process"], tracks: [{ id: "registry", title: "Registry operations", table: "registry", by: "upid" }] },
  syscalls: { lanes: ["process"], tracks: [{ id: "syscalls", title: "System calls", table: "syscall", by: "function", most: 8_000_000 }] },
  memory: { lanes: ["process", "memory", "faults"], tracks: [{ id: "committed", title: "Committed", table: "virtual_alloc", sum: "committed_bytes", by: "upid" }] },
  clr: { lanes: ["process"], tracks: [gc, { id: "exceptions", title: "Exceptions", table: "clr_exception", by: "exception_type" }] },
  hangs: { lanes: ["process", "delays", "focus"], tracks: [{ id: "hangs", title: "Not responding", table: "ui_delay", sum: "dur_ns", by: "upid", color: "--crit" }] },
  power: { lanes: ["process", "frequency", "idle"], tracks: [] },
  events: { lanes: ["process"], tracks: [events] },
  loggers: { lanes: ["process"], tracks: [events] },
  marks: { lanes: ["process", "intervals"], tracks: [{ id: "intervals by name", title: "Intervals", table: "interval", sum: "dur_ns", by: "name" }] },
  compare: { lanes: ["process"], tracks: [interrupts] },
};

const USUAL: Shown = { lanes: ["process"], tracks: [] };

/** A trace without processors' time shows its events instead, on every panel. */
const rows = (name: string) => table(name)?.rows ?? 0;
const bare = () => rows("cswitch") + rows("sample") === 0 && rows("event") > 0;

interface Own {
  tracks: Track[];
}

/** Tracks of one's own. */
const MOST = 12;

/** Tracks that somebody made of groups of tables; they stand above every panel. */
export const ownTracks = (): Track[] =>
  setting<Own>("tracks", { tracks: [] }).tracks.filter((one) => [one?.id, one?.title, one?.table].every((text) => typeof text === "string")).slice(-MOST);
export const addTracks = (tracks: Track[]) => set<Own>("tracks", { tracks: [...ownTracks().filter((one) => tracks.every((track) => track.id !== one.id)), ...tracks] });
export const addTrack = (track: Track) => addTracks([track]);
export const dropTracks = () => set<Own>("tracks", { tracks: [] });

export function shownOf(panel: string): Shown {
  const of = SHOWN[panel] ?? USUAL;
  const always = bare() && !of.tracks.includes(events) ? [events] : [];
  return { ...of, tracks: [...ownTracks(), ...always, ...of.tracks] };
}
