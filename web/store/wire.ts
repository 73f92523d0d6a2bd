/** Questions to the server, as `crates/faces/etwhy/src/commands/serve/store.rs` answers them. */

import { pending } from "../hud/base/awaited.ts";
import type { Filter } from "./state.ts";

export interface Choice {
  name: string;
  machines: number;
}

export interface StoreFacts {
  program: string;
  store: string;
  traces: number;
  machines: number;
  models: Choice[];
  systems: Choice[];
  first_day: string | null;
  last_day: string | null;
}

/** A row of `rank.sql`, or of `rank_findings.sql`. */
export interface RankRow {
  culprit: string | null;
  vendor?: string | null;
  category?: string | null;
  share_percent?: number;
  cpu_ns?: number;
  machines?: number;
  machines_able: number;
  p50_percent?: number | null;
  p95_percent?: number | null;
  wh_per_day?: number | null;
  finding_id?: string;
  title?: string;
  found?: number;
  could_tell?: number;
  machines_found?: number;
  critical?: number;
  culprit_machines?: number | null;
}

export interface Rank {
  traces: number;
  machines: number;
  rows: RankRow[];
}

export interface MachineRow {
  machine_id: string;
  computer: string | null;
  model: string | null;
  share_percent?: number;
  traces: number;
  versions: string[];
  severity?: string;
  headline?: string;
}

export interface Machines {
  rows: MachineRow[];
  versions: Choice[];
}

/** A row of `traces.sql`, and what was asked about in it. */
export interface TraceRow {
  trace_id: string;
  machine_id: string;
  computer: string | null;
  model: string | null;
  os: string;
  captured_utc: string;
  duration_ns: number;
  path: string;
  files: number;
  critical: number;
  warning: number;
  notice: number;
  sentence: string;
  of?: { share_percent?: number; headline?: string; severity?: string };
}

export interface Hit {
  finding_id: string;
  title: string;
  severity: string;
  headline: string;
  confidence: string | null;
}

export interface Cost {
  kind: string;
  culprit: string;
  share_percent: number;
}

export interface TraceDetail {
  trace: TraceRow;
  hits: Hit[];
  costs: Cost[];
  /** Where its file is, if it can be opened. */
  file: string | null;
  why_not: string | null;
}

/** What each question is answered with. */
export interface Answers {
  facts: StoreFacts;
  rank: Rank;
  machines: Machines;
  traces: { rows: TraceRow[] };
  trace: TraceDetail;
  open: { trace: number };
}

export interface Question {
  filter?: Filter;
  what?: string;
  name?: string;
  machine_id?: string;
  trace_id?: string;
}

export async function ask<N extends keyof Answers>(name: N, body: Question, signal?: AbortSignal): Promise<Answers[N]> {
  const done = pending();
  try {
    const response = await fetch(`../api/v1/store/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error((answer as { error: string }).error);
    return answer as Answers[N];
  } catch (error) {
    if (error instanceof TypeError) throw new Error("etwhy serve does not answer. Has it stopped?");
    throw error;
  } finally {
    done();
  }
}
