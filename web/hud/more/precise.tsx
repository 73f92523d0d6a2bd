/** CPU usage, precise: threads run, are ready, wait; who wakes whom; what a time range was spent on. */

import { useMemo, useState } from "preact/hooks";
import { count, duration } from "../../src/lib/format.ts";
import { counted, span } from "../base/value.ts";
import { Box, Fault, Nothing, Sql } from "../parts/box.tsx";
import { Grid, type GridColumn } from "../parts/grid.tsx";
import { describe, Lanes, threadName } from "../parts/lanes.tsx";
import { Pieces, STATES } from "../parts/lanes_draw.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot } from "../parts/pivot/pivot.tsx";
import { PathList } from "../parts/path_list.tsx";
import { SwitchDetail, useSwitch } from "../parts/switch_detail.tsx";
import { ThreadList } from "../parts/thread_list.tsx";
import { part, scope, set, setting, shown, view, whole, type Range } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask, askRows } from "../wire/api.ts";
import type { ThreadSort } from "../wire/types.ts";

interface Settings {
  sort: ThreadSort;
  search: string;
  /** utids; none: the first of the list. */
  picked: number[];
  arrows: boolean;
  table: boolean;
  path: { utid: number; range: Range } | null;
  /** Row of cswitch. */
  row: number | null;
}

const FALLBACK: Settings = { sort: "run", search: "", picked: [], arrows: true, table: false, path: null, row: null };
/** Lanes that are drawn unless somebody picks. */
const TOP = 8;
const MOST = 48;
/** Threads of a critical path that get a lane of their own. */
const OF_PATH = 12;

/** What WPA's CPU Usage (Precise) shows of each group. */
const VALUES: Preset["values"] = [
  { fn: "count" },
  { column: "cpu_ns", fn: "sum" },
  { column: "run_ns", fn: "max" },
  { column: "wait_ns", fn: "sum" },
  { column: "wait_ns", fn: "avg" },
  { column: "wait_ns", fn: "max" },
  { column: "ready_ns", fn: "sum" },
  { column: "ready_ns", fn: "avg" },
  { column: "ready_ns", fn: "max" },
];
const PRESETS: Preset[] = [
  { name: "New process, thread, wait reason", table: "cswitch", group: ["new_upid", "new_utid", "prev_wait_reason"], values: VALUES },
  { name: "New process, new thread stack", table: "cswitch", group: ["new_upid", "new_utid", "stack_id.leaf"], values: VALUES },
  { name: "New process, readying process and thread", table: "cswitch", group: ["new_upid", "new_utid", "readying_upid", "readying_utid"], values: VALUES },
  { name: "Readying process, ready thread stack", table: "cswitch", group: ["readying_upid", "ready_stack_id.leaf", "new_upid"], values: VALUES },
  { name: "Wait reason", table: "cswitch", group: ["prev_wait_reason", "new_upid"], values: VALUES },
  { name: "Processor, priority", table: "cswitch", group: ["cpu", "new_priority"], values: VALUES },
];

const change = (to: Partial<Settings>) => set<Settings>("precise", to);

function StateTable(props: { pieces: Pieces }) {
  const { pieces } = props;
  const columns: GridColumn[] = [
    { id: "thread", title: "Thread", width: "minmax(200px, 1.5fr)" },
    { id: "start", title: "Start", number: true, width: "140px", amounts: { unit: "moment", of: (row) => pieces.start[row] } },
    { id: "dur", title: "Time", number: true, width: "100px", amounts: { unit: "ns", of: (row) => pieces.dur[row] } },
    { id: "state", title: "State", width: "90px" },
    { id: "reason", title: "Wait reason", width: "minmax(120px, 1fr)" },
    { id: "cpu", title: "CPU", number: true, width: "60px" },
  ];
  return (
    <Grid
      label="States of threads over time"
      columns={columns}
      count={pieces.count}
      most={16}
      onActivate={(row) => {
        const cell = pieces.rows.get(row, "row");
        if (typeof cell === "number") change({ row: cell });
      }}
      text={(row, column) => {
        const lane = pieces.lanes[pieces.lane[row] ?? 0];
        const cpu = pieces.rows.get(row, "cpu");
        const cells = [
          lane ? threadName(lane.thread) : "",
          "",
          "",
          STATES[pieces.state[row] ?? 3] ?? "",
          pieces.reasons[pieces.reason[row] ?? -1] ?? "",
          cpu === null ? "" : String(cpu),
        ];
        return cells[column] ?? "";
      }}
    />
  );
}

/** The piece that had the focus, after others were read. */
function same(focus: { pieces: Pieces; piece: number }, now: Pieces): number | null {
  if (focus.pieces === now) return focus.piece;
  const utid = focus.pieces.lanes[focus.pieces.lane[focus.piece] ?? 0]?.thread.utid;
  const lane = now.lanes.findIndex((one) => one.thread.utid === utid);
  return lane < 0 ? null : now.at(lane, Math.max(now.range[0], focus.pieces.start[focus.piece] ?? 0));
}

function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      <li><span class="swatch run" aria-hidden="true" /> running</li>
      <li><span class="swatch ready" aria-hidden="true" /> ready, no processor</li>
      <li><span class="swatch wait" aria-hidden="true" /> waiting</li>
      <li><span class="swatch unknown" aria-hidden="true" /> unknown</li>
    </ul>
  );
}

export function Precise() {
  const settings = setting<Settings>("precise", FALLBACK);
  const [width, setWidth] = useState(1000);
  const [focus, setFocus] = useState<{ pieces: Pieces; piece: number } | null>(null);
  const [hover, setHover] = useState<{ piece: number; x: number; y: number } | null>(null);
  const trace = view.value.trace;
  const question = { ...part.value, sort: settings.sort, search: settings.search, limit: 500 };
  const list = useAnswer(`thread_states ${JSON.stringify(question)}`, (signal) => ask("thread_states", question, signal));

  // Lanes stay while something on them is selected: they are the first of what is shown, the list is of the selection.
  const first = { ...question, range: view.value.zoom, search: "" };
  const top = useAnswer(settings.picked.length > 0 ? null : `thread_states ${JSON.stringify(first)}`, (signal) => ask("thread_states", first, signal));

  const walk = settings.path ? { trace, range: settings.path.range, thread: settings.path.utid } : null;
  const found = useAnswer(walk ? `path ${JSON.stringify(walk)}` : null, (signal) => ask("path", walk, signal));
  const path = walk ? found.value : null;

  const base = settings.picked.length > 0 ? settings.picked : (top.value?.threads ?? []).slice(0, TOP).map((one) => one.utid);
  const ofPath = [...new Set(path?.causes.map((cause) => cause.utid) ?? [])].slice(0, OF_PATH);
  const threads = [...new Set([...(settings.path ? [settings.path.utid] : []), ...ofPath, ...base])].slice(0, MOST);
  const wanted = { trace, range: shown.value, threads, width: Math.max(200, Math.min(4096, Math.round(width / 50) * 50)) };
  const lanes = useAnswer(threads.length > 0 ? `states ${JSON.stringify(wanted)}` : null, (signal) => askRows("states", wanted, signal).then((rows) => new Pieces(rows)), 60);
  const pieces = lanes.value;
  const at = pieces && focus ? same(focus, pieces) : null;

  const rowOf = (piece: number | null) => {
    const cell = piece === null ? null : (pieces?.rows.get(piece, "row") ?? null);
    return typeof cell === "number" ? cell : null;
  };
  const hovered = useSwitch(hover && pieces ? rowOf(hover.piece) : null, 250);
  const detail = useSwitch(settings.row);
  const pathPieces = useMemo(() => path?.pieces ?? [], [path]);

  const toggle = (utid: number) => {
    const now = settings.picked.length > 0 ? settings.picked : base;
    change({ picked: now.includes(utid) ? now.filter((one) => one !== utid) : [...now, utid].slice(-MOST) });
  };
  const walkFrom = (utid: number) => change({ path: { utid, range: scope.value ?? whole.value } });
  // Who woke these threads without being drawn: nobody follows a wait to somebody who is not there.
  const woken = { ...part.value, range: shown.value, table: "cswitch", where: [{ column: "new_utid", op: "in", value: threads }, { column: "readying_utid", op: "not_null", value: null }], group: ["readying_utid"], values: [{ fn: "count" }], sort: [], limit: 16 };
  const wakers = useAnswer(pieces && pieces.fromThreads > 0 ? `wakers ${JSON.stringify(woken)}` : null, (signal) => askRows("pivot", woken, signal), 200).value;
  const missing = wakers ? Array.from({ length: wakers.count }, (_, row) => wakers.num(row, "readying_utid")).filter((utid) => !threads.includes(utid)) : [];
  const elsewhere = pieces ? pieces.fromThreads + pieces.fromDpcs : 0;

  return (
    <div class="precise" data-part="precise">
      <Box
        title="Threads over time"
        tools={
          <>
            <Legend />
            <label>
              <input type="checkbox" checked={settings.arrows} onChange={(event) => change({ arrows: event.currentTarget.checked })} /> wake-ups
            </label>
            <button type="button" class="small" aria-pressed={settings.table} onClick={() => change({ table: !settings.table })}>
              Show as table
            </button>
            {settings.picked.length > 0 && (
              <button type="button" class="small" onClick={() => change({ picked: [] })}>
                The top {TOP} again
              </button>
            )}
          </>
        }
      >
        <Fault error={lanes.error ?? found.error} />
        {pieces && settings.table && <StateTable pieces={pieces} />}
        {pieces && (
          <div hidden={settings.table}>
            <Lanes
              pieces={pieces}
              path={pathPieces}
              arrows={settings.arrows}
              focus={at}
              onFocus={(piece) => {
                setFocus(piece === null ? null : { pieces, piece });
                const row = rowOf(piece);
                if (row !== null) change({ row });
              }}
              onHover={(piece, x, y) => setHover(piece === null ? null : { piece, x, y })}
              onPath={walkFrom}
              onDrop={threads.length > 1 ? toggle : null}
              onWidth={setWidth}
            />
          </div>
        )}
        {!pieces && !lanes.error && <p class="about">{top.value && top.value.threads.length === 0 ? "No thread ran, waited or was ready in this part." : "Adding up …"}</p>}
        {pieces && (
          <p class="about" data-part="lanes-note">
            {span(pieces.range)}.{" "}
            {pieces.bucket === null ? "Each interval as it was." : `Zoomed out: each column averages ${duration(pieces.bucket)}. Zoom in for single intervals.`}{" "}
            {settings.arrows &&
              (pieces.wakeupsTotal > pieces.wakeups.length
                ? `${count(pieces.wakeupsTotal)} wake-ups among these threads are too many for arrows: zoom in. `
                : `Arrows: ${counted(pieces.wakeupsTotal, "wake-up")} among these threads. `)}
            {elsewhere > 0 && `${count(pieces.fromThreads)} more by other threads, ${count(pieces.fromDpcs)} by DPCs or by nobody known. `}
            {missing.length > 0 && threads.length < MOST && (
              <button type="button" class="small" onClick={() => change({ picked: [...threads, ...missing].slice(0, MOST) })}>
                Add the {counted(missing.length, "thread that wakes", "threads that wake")} them
              </button>
            )}
          </p>
        )}
        {at !== null && pieces && <p class="about" role="status">{describe(pieces, at)}</p>}
      </Box>
      {hover && pieces && (
        <div class="lane-tip" role="tooltip" style={{ left: `${Math.max(4, Math.min(hover.x + 14, innerWidth - 560))}px`, ...(hover.y > innerHeight * 0.6 ? { bottom: `${innerHeight - hover.y + 12}px` } : { top: `${hover.y + 14}px` }) }}>
          <p>{describe(pieces, hover.piece)}</p>
          {hovered.value && rowOf(hover.piece) !== null && <SwitchDetail detail={hovered.value} short />}
        </div>
      )}
      {settings.path && !path && !found.error && <p class="about">Walking back …</p>}
      {path && (
        <PathList
          path={path}
          onPiece={(piece) => change({ row: piece.row })}
          onClose={() => change({ path: null })}
        />
      )}
      {settings.row !== null && (
        <Box
          title="The switch behind it"
          tools={
            <button type="button" class="small" onClick={() => change({ row: null })}>
              Close
            </button>
          }
        >
          <Fault error={detail.error} />
          {detail.value && <SwitchDetail detail={detail.value} />}
        </Box>
      )}
      <Box title="Threads" tools={<Sql sql={list.value?.sql} />}>
        <Fault error={list.error} />
        {list.value && list.value.total === 0 && settings.search === "" && <Nothing why="No context switches in this range." />}
        {list.value && (
          <ThreadList
            threads={list.value.threads}
            total={list.value.total}
            sort={settings.sort}
            search={settings.search}
            drawn={threads}
            onSort={(sort) => change({ sort })}
            onSearch={(search) => change({ search })}
            onToggle={toggle}
            onPath={walkFrom}
          />
        )}
        {list.value && list.value.unused.length > 0 && <p class="about">Filters by {list.value.unused.join(" and ")} don’t apply to these sums: they are cut at the ends of the range, stacks are not asked.</p>}
      </Box>
      <div class="switches">
        <Pivot id="switches" title="Switches, grouped (CPU usage, precise)" presets={PRESETS} />
        <p class="about">Rows count whole if the thread was switched in within the range, as WPA has it; the sums of threads above are cut at the ends of the range.</p>
      </div>
    </div>
  );
}
