// Generated from the structs of crates/faces/hud by its test `wire`: do not edit.

import type { Report } from "../../src/model.ts";

/** Answers in JSON, by question. */
export interface Answers {
  diff: Diff;
  identity: Identities;
  interrupts: Interrupts;
  knowledge: unknown;
  open: TraceInfo;
  path: CriticalPath;
  report: Report;
  schema: Schema;
  select: Selection;
  session: Session;
  switch: SwitchDetail;
  thread_states: ThreadStates;
}

/** Facts about the rows of answers in Arrow, by question. */
export interface Facts {
  butterfly: ButterflyFacts;
  figures: SqlFacts;
  functions: FunctionsFacts;
  lanes: LanesFacts;
  pivot: PivotFacts;
  rows: RowsFacts;
  sql: SqlFacts;
  stack_chart: ChartFacts;
  states: StatesFacts;
  tree: TreeFacts;
}

/** What a band stands for. */
export type BandKind = "process" | "rest" | "idle" | "dpc" | "isr" | "unknown" | "kernel" | "user" | "plain";

/** Of the function or module. */
export type ButterflyFacts = { total: number, count: number, part_total: number, inclusive: number, inclusive_count: number, exclusive: number, exclusive_count: number, recursive: number, functions: Array<string>, groups: Array<ButterflyGroup>, groups_in_all: number, metric: string, about: string, manual: string, unit: string, table: string, unused: Array<string>, sql: string | null, why: string | null, 
/** The command that records what is missing. */
record: string | null, };

/** What it cost in a process or thread. */
export type ButterflyGroup = { name: string, total: number, own: number, count: number, };

/** How a figure went from one trace to another. */
export type Change = { 
/** new (nothing before), gone (nothing after), more, less, or chance (no more than that). What is new or gone may be chance too. */
what: string, 
/** The sums of the whole runs; none for means. */
per_run: Ratio | null, 
/** Before. */
before: number, 
/** After. */
after: number, 
/** After divided by before; none if it was nothing before. */
ratio: number | null, 
/** Lower end of the interval of the ratio: 95 %, over all names that are compared at once. */
ratio_low: number | null, 
/** Upper end; none if it has none. */
ratio_high: number | null, 
/** The interval does not hold 1: more than chance. */
significant: boolean, };

/** Of the picture. */
export type ChartFacts = { from: number, to: number, utid: number | null, cpu: number | null, samples: number, weight: number, 
/** Samples under heavier stacks of the same pixel. */
hidden: number, 
/** Boxes that were too many. */
left_out: number, levels: number, 
/** Context switches were recorded. */
switches: boolean, sql: string | null, threads: Array<ChartThread>, threads_in_all: number, why: string | null, 
/** The command that records what is missing. */
record: string | null, };

/** A thread and its CPU time. */
export type ChartThread = { utid: number, name: string, weight: number, samples: number, };

/** A filter that an answer suggests. */
export type Chosen = { kind: FilterKind, value: number | string, 
/** What people read. */
label: string, };

export type ColumnInfo = { name: string, type: string, unit: string, role: string, doc: string, };

/** How a cell is compared. Null fulfils nothing but [`Op::IsNull`] and [`Op::Ne`]. */
export type ConditionOp = "eq" | "ne" | "ge" | "gt" | "le" | "lt" | "contains" | "is_null" | "not_null" | "in" | "stack_has";

/** The load of a processor. */
export type CpuLoad = { 
/** Number. */
cpu: number, 
/** DPCs, without what interrupted them. */
dpc_ns: number, 
/** ISRs, likewise. */
isr_ns: number, 
/** How many of both. */
count: number, 
/** The module with most of it, and its time. */
top: [string, number] | null, };

export type CriticalPath = { range: [number, number], thread: Thread, 
/** All that pieces and causes name. */
threads: Array<Thread>, 
/** Latest first. */
pieces: Array<PathPiece>, 
/** Pieces in all. */
total: number, 
/** It has more pieces than can be followed. */
cut: boolean, 
/** Largest first. */
causes: Array<PathCause>, causes_total: number, };

/** All comparisons of some traces, the first of which is the base. */
export type Diff = { 
/** Version of this form. */
schema: string, 
/** The traces. */
traces: Array<DiffTrace>, 
/** What must be known before the figures are read. */
caveats: Array<string>, 
/** Processes, drivers, functions: changes from the first trace to each other one. */
entities: Array<DiffEntity>, 
/** DPCs and ISRs by module. */
interrupts: Array<DiffInterrupts>, 
/** Findings. */
verdicts: Array<DiffVerdict>, 
/** Drivers and programs that came, went, or have another version. */
modules: Array<ModuleChanges>, };

/** A class of durations. */
export type DiffClass = { 
/** Longer than this, ns. */
above_ns: number, 
/** Up to this, ns; none for the last class. */
up_to_ns: number | null, 
/** How many in each trace. */
counts: Array<number>, 
/** Longer than Microsoft's limit. */
over_limit: boolean, 
/** Sum of their durations in each trace, ns. */
total_ns: Array<number>, };

/** Something that used the processor. */
export type DiffEntity = { 
/** process, driver, module or function. */
kind: string, 
/** Its name. */
name: string, 
/** CPU time in each trace. */
cpu_ns: Array<number>, 
/** The same as share of the observed time of the processors. */
share: Array<number>, 
/** From the first trace to each other one. */
changes: Array<Change>, };

/** Figures of one trace. */
export type DiffFigures = { 
/** How many. */
count: number, 
/** How many each second in which they were observed. */
per_second: number, 
/** Time in all, without what interrupted them. */
total_ns: number, 
/** Mean duration. */
mean_ns: number, 
/** 95 % took no longer. */
p95_ns: number, 
/** The longest. */
max_ns: number, 
/** Longer than Microsoft's limit. */
over_limit: number, };

/** What a module's DPCs or ISRs did in each trace. */
export type DiffInterrupts = { 
/** dpc or isr. */
class: string, 
/** The module. */
module: string, 
/** Figures in each trace. */
traces: Array<DiffFigures>, 
/** Time as share of what was observed, from the first trace to each other one. */
changes: Array<Change>, 
/** Mean duration, from the first trace to each other one. */
mean_changes: Array<Change>, 
/** The distribution: lower and upper end of a class in ns, and how many in each trace. */
histogram: Array<DiffClass>, };

/** What a trace can be normalised by. */
export type DiffTrace = { 
/** What the trace is called. */
label: string, 
/** From the first to the last event. */
duration_ns: number, 
/** Logical processors. */
cpus: number, 
/** Observed time of the processors: what shares of CPU time are shares of. */
capacity_ns: number, 
/** Time of the processors in which DPCs and ISRs would have been recorded. */
event_capacity_ns: number, 
/** What was not observed of processors times duration. */
unobserved_ns: number, 
/** Of all time of processors, that in which records may be missing (table `unobserved`): what was not seen there may have been anything. */
lost_ns: number, 
/** Busy time, if samples or context switches tell. */
busy_ns: number | null, 
/** Busy time as share of the observed time. */
busy_share: number | null, 
/** Interval of CPU samples. */
sample_interval_ns: number, };

/** How a finding went. */
export type DiffVerdict = { 
/** The finding. */
id: string, 
/** Who. */
culprit: string, 
/** How much it matters at its worst. */
severity: string, 
/** In each trace: found, not_found or cannot_tell. */
answers: string[], 
/** Cost in each trace as share of the observed time of the processors, if the finding tells. */
shares: Array<number | null>, 
/** The same as time. */
costs_ns: Array<number | null>, 
/** From the first trace to each other one: resolved, new, worse, better, same, absent, cannot_tell. */
changes: Array<string>, 
/** What it says in the last trace that has it. */
headline: string, };

/** A kind of lane of which there is nothing. */
export type EmptyLane = { kind: string, about: string, why: string | null, recording: string, };

/** A filter of the page. */
export type Filter = { 
/** What it speaks of. */
kind: FilterKind, 
/** upid, utid, number of a processor, name of a module, or a frame as [`Matcher`] reads it. */
value: number | string, 
/** The others. */
not: boolean, };

/** What a filter speaks of. */
export type FilterKind = "process" | "thread" | "cpu" | "module" | "frame";

/** A culprit that a finding names, with the time range that a click on its card selects; without one it happened all the time. */
export type FindingMark = { finding: string, hit: number, title: string, severity: string, headline: string, culprit: string, range: [number, number] | null, };

/** A frame. */
export type Frame = { label: string, kind: string, security: boolean, };

/** Frames of a stack, innermost first. */
export type FrameList = { frames: Array<Frame>, 
/** There are more. */
more: boolean, };

export type FunctionInfo = { name: string, args: Array<string>, about: string, };

/** Of all functions. */
export type FunctionsFacts = { total: number, count: number, part_total: number, functions: number, matched: number, metric: string, about: string, manual: string, unit: string, table: string, unused: Array<string>, sql: string | null, why: string | null, 
/** The command that records what is missing. */
record: string | null, };

export type Identities = { 
/** In the order of the questions; none: nobody here, or more than one. */
known: Array<Known | null>, };

/** A class of durations. */
export type InterruptBin = { 
/** Above this. */
above_ns: number, 
/** Up to this; none for the last class. */
up_to_ns: number | null, 
/** How many. */
count: number, 
/** Their durations. */
total_ns: number, 
/** The class lies above the limit. */
over_limit: boolean, };

/** DPC or ISR. */
export type InterruptClass = "dpc" | "isr";

/** DPCs or ISRs of a driver. */
export type InterruptDriver = { 
/** DPC or ISR. */
class: InterruptClass, 
/** Module of the routines; none for all of a class. */
module: string | null, 
/** Time of each processor on which any ran, without what interrupted them. */
cpus: { [key in number]: number }, 
/** Processors with at least half as much time as the busiest. */
hot: Array<number>, 
/** Time on those. */
hot_ns: number, 
/** Classes that hold any. */
bins: Array<InterruptBin>, 
/** Its routines, the costliest first. */
routines: Array<InterruptRoutine>, 
/** Routines that are not listed. */
more_routines: number, 
/** How many. */
count: number, 
/** With what interrupted them. */
total_ns: number, 
/** Without. */
exclusive_ns: number, 
/** Mean duration. */
mean_ns: number, 
/** Half took no longer. */
p50_ns: number, 
/** 95 % took no longer. */
p95_ns: number, 
/** 99 % took no longer. */
p99_ns: number, 
/** The longest. */
max_ns: number, 
/** Longer than the limit, without what interrupted them. */
over_limit: number, 
/** Duration of those. */
over_limit_ns: number, };

/** How long one should take at most, ns, and who says so. */
export type InterruptLimits = { dpc: number, isr: number, source: string, };

/** One routine. */
export type InterruptRoutine = { 
/** `module!function`. */
routine: string, 
/** Processors on which it ran. */
cpus: number, 
/** How many. */
count: number, 
/** With what interrupted them. */
total_ns: number, 
/** Without. */
exclusive_ns: number, 
/** Mean duration. */
mean_ns: number, 
/** Half took no longer. */
p50_ns: number, 
/** 95 % took no longer. */
p95_ns: number, 
/** 99 % took no longer. */
p99_ns: number, 
/** The longest. */
max_ns: number, 
/** Longer than the limit, without what interrupted them. */
over_limit: number, 
/** Duration of those. */
over_limit_ns: number, };

/** Sums of durations. */
export type InterruptSums = { 
/** How many. */
count: number, 
/** With what interrupted them. */
total_ns: number, 
/** Without. */
exclusive_ns: number, 
/** Mean duration. */
mean_ns: number, 
/** Half took no longer. */
p50_ns: number, 
/** 95 % took no longer. */
p95_ns: number, 
/** 99 % took no longer. */
p99_ns: number, 
/** The longest. */
max_ns: number, 
/** Longer than the limit, without what interrupted them. */
over_limit: number, 
/** Duration of those. */
over_limit_ns: number, };

export type Interrupts = { range: [number, number], processors: number, limits: InterruptLimits, 
/** Upper borders of classes of durations. */
borders: Array<number>, 
/** All DPCs, all ISRs: no module. */
all: Array<InterruptDriver>, 
/** The costliest first. */
drivers: Array<KnownDriver>, cpus: Array<CpuLoad>, 
/** Of the whole trace. */
stacks: Array<OnStack>, sql: Array<string>, unused: Array<string>, };

/** Who or what it is in this trace. */
export type Known = { value: number | string, 
/** What people read. */
label: string, who?: Somebody, };

/** A driver, and what is known of it. */
export type KnownDriver = { vendor: string | null, category: string | null, security: boolean, 
/** DPC or ISR. */
class: InterruptClass, 
/** Module of the routines; none for all of a class. */
module: string | null, 
/** Time of each processor on which any ran, without what interrupted them. */
cpus: { [key in number]: number }, 
/** Processors with at least half as much time as the busiest. */
hot: Array<number>, 
/** Time on those. */
hot_ns: number, 
/** Classes that hold any. */
bins: Array<InterruptBin>, 
/** Its routines, the costliest first. */
routines: Array<InterruptRoutine>, 
/** Routines that are not listed. */
more_routines: number, 
/** How many. */
count: number, 
/** With what interrupted them. */
total_ns: number, 
/** Without. */
exclusive_ns: number, 
/** Mean duration. */
mean_ns: number, 
/** Half took no longer. */
p50_ns: number, 
/** 95 % took no longer. */
p95_ns: number, 
/** 99 % took no longer. */
p99_ns: number, 
/** The longest. */
max_ns: number, 
/** Longer than the limit, without what interrupted them. */
over_limit: number, 
/** Duration of those. */
over_limit_ns: number, };

/** A process, wherever it is seen. */
export type KnownProcess = { 
/** Image name. */
name: string, 
/** Process id. */
pid: number, 
/** Start; `None`: before the trace. */
start_ms: number | null, 
/** First moment at which the trace shows it. */
seen_ms: number | null, };

/** A thread, wherever it is seen. */
export type KnownThread = { 
/** Thread id. */
tid: number, 
/** Its process. */
process: KnownProcess | null, 
/** Start; `None`: before the trace. */
start_ms: number | null, 
/** First moment at which the trace shows it. */
seen_ms: number | null, };

/** How a lane is to be drawn. */
export type LaneShape = "share" | "stack" | "level" | "marks";

/** Of the answer. Series are numbered through all lanes. */
export type LanesFacts = { start_ns: number, bucket_ns: number, 
/** Buckets. */
count: number, lanes: Array<WireLane>, empty: Array<EmptyLane>, unused: Array<string>, 
/** Where processors are: number, group and NUMA node. */
places: Array<[number | null, number | null, number | null]>, 
/** If asked for. */
findings: Array<FindingMark> | null, events_lost: number, buffers_lost: number, 
/** By the clock; none: the trace does not say. */
start_unix_ns: number | null, };

export type MetricInfo = { name: string, about: string, manual: string, unit: string, table: string, 
/** Its table has rows. */
there: boolean, };

/** What changed from the first trace to another one. */
export type ModuleChanges = { 
/** Modules that came. */
added: Array<string>, 
/** Modules that went. */
removed: Array<string>, 
/** Modules with another version or file: name, before, after. */
replaced: Array<[string, string, string]>, 
/** Several kernel modules changed at once: a difference cannot be credited to one of them. */
together: boolean, };

/** Sampled time of a driver inside of the DPCs or ISRs of another, in the whole trace. */
export type OnStack = { 
/** DPC or ISR. */
class: string, 
/** Module whose routine was called. */
host: string, 
/** Innermost driver that is not Windows itself. */
driver: string, 
/** Who makes it. */
vendor: string | null, 
/** What it belongs to. */
product: string | null, 
/** What it is for. */
category: string | null, 
/** A security product. */
security: boolean, 
/** Sampled time. */
cost_ns: number, 
/** Of all sampled time in the host's DPCs or ISRs, percent. */
percent: number, 
/** Samples. */
samples: number, };

/** What the page asks about; it stands beside the other keys of a body. */
export type Part = { 
/** From (included) and to (not), ns. */
range: [number, number] | null, 
/** All must hold. */
filters: Array<Filter>, };

export type PathCause = { kind: ThreadState, utid: number, reason: string | null, in_dpc: boolean, dur_ns: number, pieces: number, longest: PathPiece | null, };

export type PathPiece = { start_ns: number, dur_ns: number, kind: ThreadState, utid: number, depth: number, cpu: number | null, reason: string | null, in_dpc: boolean, 
/** Row of `cswitch`. */
row: number | null, 
/** Innermost frame. */
leaf: string | null, };

/** A condition. Texts are compared by their bytes, except by [`Op::Contains`]. */
export type PivotCondition = { 
/** Column. */
column: string, 
/** More columns: it is enough if one of all fulfils it. */
or: Array<string>, 
/** How. */
op: ConditionOp, 
/** With what: a number, a text, a list; 64 bits that are no number as `0x…`. */
value: unknown, 
/** The other rows, also those with nulls. */
not: boolean, };

/** Of the answer. */
export type PivotFacts = { sql: string, 
/** Groups in all. */
groups: number, 
/** Rows that the conditions let through. */
rows: number, 
/** The values over all those rows. */
totals: (number | string | null)[], 
/** False if there are too many groups for `spark`. */
spark: boolean, unused: Array<string>, };

/** How a value is computed. Nulls do not count. */
export type PivotFunction = "count" | "sum" | "min" | "max" | "avg" | "unique";

/** A pivot table. */
export type PivotQuestion = { 
/** Table. */
table: string, 
/** All must hold. */
where: Array<PivotCondition>, 
/** Keys, the outermost first. */
group: Array<string>, 
/** What is computed for each group. */
values: Array<PivotValue>, 
/** Order; the first value, largest first, unless given. */
sort: Array<PivotSort>, 
/** Groups to give. */
limit: number | null, 
/** Groups to leave out before. */
offset: number, 
/** Values (by position) that get a column with their share of all, in percent: counts and sums. */
share: Array<number>, };

/** What groups are ordered by: a value or a key, by position. */
export type PivotSort = { 
/** Value. */
value: number | null, 
/** Key, if no value is given. */
key: number | null, 
/** Largest first. Nulls come last in either direction. */
down: boolean, };

/** Something to compute. */
export type PivotValue = { 
/** What of; nothing: rows (for [`Function::Count`]). */
column: string | null, 
/** How. */
fn: PivotFunction, };

/** Two figures and their ratio. */
export type Ratio = { 
/** Before. */
before: number, 
/** After. */
after: number, 
/** After divided by before; none if it was nothing before. */
ratio: number | null, 
/** Lower end of the interval of the ratio: 95 %, over all names that are compared at once. */
ratio_low: number | null, 
/** Upper end; none if it has none. */
ratio_high: number | null, 
/** The interval does not hold 1: more than chance. */
significant: boolean, };

/** Of the answer. */
export type RowsFacts = { sql: string, 
/** In all. */
rows: number, unused: Array<string>, };

export type ScalarInfo = { usage: string, about: string, };

export type Schema = { tables: Array<TableInfo>, views: Array<ViewInfo>, functions: Array<FunctionInfo>, scalars: Array<ScalarInfo>, metrics: Array<MetricInfo>, };

/** Range, filters, metric. */
export type Selection = { 
/** None: all the time. */
range: [number, number] | null, why: string, filters: Array<Chosen>, 
/** What to add up along stacks. */
metric: string, };

export type Session = { program: string, readonly: boolean, 
/** Folders whose traces may be opened. */
folders: Array<string>, traces: Array<TraceInfo>, };

export type Somebody = KnownProcess | KnownThread;

/** Of the answer. */
export type SqlFacts = { sql: string, rows: number, 
/** There are others. */
more: boolean, };

/** What a body says besides its part. */
export type StackQuestion = { 
/** Name of a metric, or TABLE.COLUMN. */
metric: string, 
/** Levels above the frames. */
by: Array<string>, 
/** Functions in which stacks end first. */
inverted: boolean, 
/** Steps in the order in which they were taken. */
steps: Array<Step>, 
/** Processes and threads by name alone, which two traces may share. */
names_only: boolean, };

/** Of the answer. */
export type StatesFacts = { range: [number, number], lanes: Array<ThreadLane>, 
/** None: intervals as they are. */
bucket_ns: number | null, 
/** Wait reasons, by number. */
reasons: Array<string>, 
/** When, lane that did it, lane that could run then, row of `cswitch`. */
wakeups: Array<[number, number, number, number]>, wakeups_total: number, from_threads: number, from_dpcs: number, };

/** A step. */
export type Step = { "op": "subtree", path: Array<string>, inverted: boolean, } | { "op": "focus", function: string, } | { "op": "with", function: string, } | { "op": "drop", function: string, } | { "op": "merge", function: string, } | { "op": "trim_above", function: string, } | { "op": "trim_below", function: string, } | { "op": "focus_module", module: string, } | { "op": "drop_module", module: string, } | { "op": "merge_module", module: string, } | { "op": "collapse", module: string, } | { "op": "recursion" } | { "op": "mine" };

export type SwitchDetail = { thread: Thread, ts_ns: number, cpu: number, run_ns: number | null, wait_ns: number | null, ready_ns: number | null, since_last_ns: number | null, waited: boolean, reason: string | null, priority: number, in_dpc: boolean | null, readier: Thread | null, 
/** Where it waited. */
stack: FrameList | null, 
/** Where the thread that readied it was. */
ready_stack: FrameList | null, sql: string, };

export type TableInfo = { name: string, title: string, doc: string, sorted_by: string | null, rows: number, why_empty: string | null, 
/** The command that records it, if it is empty. */
recording: string | null, columns: Array<ColumnInfo>, };

/** A thread of a process. */
export type Thread = { 
/** Number of the instance. */
utid: number, 
/** Thread id. */
tid: number | null, 
/** What the program or Windows calls it: its description, its service, where it began. */
name: string | null, 
/** Number of the instance. */
upid: number | null, 
/** Image name. */
process: string, 
/** Process id. */
pid: number | null, 
/** A security product. */
security: boolean, };

/** A lane and its time in each state. */
export type ThreadLane = { thread: Thread, run_ns: number, ready_ns: number, wait_ns: number, open_wait_ns: number, unknown_ns: number, };

export type ThreadLine = { top_reason: [string, number] | null, 
/** Name of the process, its upid, the time; a DPC has no upid. */
top_readier: [string, number | null, number] | null, 
/** Number of the instance. */
utid: number, 
/** Thread id. */
tid: number | null, 
/** What the program or Windows calls it: its description, its service, where it began. */
name: string | null, 
/** Number of the instance. */
upid: number | null, 
/** Image name. */
process: string, 
/** Process id. */
pid: number | null, 
/** A security product. */
security: boolean, run_ns: number, ready_ns: number, wait_ns: number, wait_max_ns: number, open_wait_ns: number, switches: number, };

export type ThreadSort = "run" | "ready" | "wait" | "switches";

/** State of a thread. */
export type ThreadState = "run" | "ready" | "wait" | "unknown";

export type ThreadStates = { threads: Array<ThreadLine>, total: number, 
/** Of all, also those that are not listed. */
sums: ThreadTotals, range: [number, number], sql: string, unused: Array<string>, };

export type ThreadTotals = { run_ns: number, ready_ns: number, wait_ns: number, switches: number, };

/** What the page knows of a trace from the start. */
export type TraceInfo = { trace: number, name: string, 
/** Tells this recording from all others. */
trace_id: string, machine_id: string, 
/** Start by the clock, milliseconds since 1970 UTC: which recording it is, for links that are opened elsewhere. */
start_ms: number | null, first_ns: number, last_ns: number, cpus: number, 
/** The verdict's sentence. */
sentence: string, };

/** Of the whole tree. */
export type TreeFacts = { total: number, count: number, part_total: number, part_count: number, nodes: number, left_out: number, least: number, refused: number, 
/** Weight without stacks. */
no_stack: number, 
/** The recording that has stacks, if most of it has none. */
stacks_record: string | null, root_found: boolean, before_total: number | null, before_count: number | null, 
/** Weight of paths that are not there any more. */
gone: number | null, metric: string, about: string, manual: string, unit: string, table: string, unused: Array<string>, sql: string | null, why: string | null, 
/** The command that records what is missing. */
record: string | null, };

export type ViewInfo = { name: string, title: string, doc: string, columns: Array<[string, string]>, sql: string, };

/** One band of a lane. */
export type WireBand = { 
/** What it stands for. */
band: BandKind, 
/** What people call it. */
name: string, 
/** Process. */
upid: number | null, 
/** Sum of all buckets (of levels: the largest). */
total: number, };

/** One lane. */
export type WireLane = { 
/** Unique among the lanes of an answer: the kind, and which one. */
id: string, 
/** The kind. */
kind: string, 
/** What people call it. */
title: string, 
/** Unit of the values, as columns have them. */
unit: string, 
/** How to draw it. */
shape: LaneShape, 
/** What a full lane is; 0: the largest sum of a bucket. */
full: number, 
/** Processor, if it is one's. */
cpu: number | null, 
/** The table that it is made of. */
source: string, 
/** The same sums, of all buckets together. */
sql: string, 
/** Bands, the lowest first. */
series: Array<WireBand>, 
/** Single things. */
marks: Array<WireMark>, };

/** A single thing on a lane. */
export type WireMark = { 
/** Begin. */
from: number, 
/** End; the begin itself if it is a moment. */
to: number, 
/** What it says. */
text: string, 
/** What it is. */
what: string, 
/** Process. */
upid: number | null, 
/** How many things it stands for. */
count: number, };
