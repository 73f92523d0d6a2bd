/** What took the time on a critical path: sums by cause, and the pieces. */

import { count, duration, percent, share } from "../../src/lib/format.ts";
import { span, visible } from "../base/value.ts";
import { addFilter, look } from "../state/view.ts";
import type { CriticalPath, PathPiece } from "../wire/types.ts";
import { Box } from "./box.tsx";
import { scaleFor, written } from "./grid/amounts.ts";
import { Grid } from "./grid.tsx";
import { threadName } from "./lanes.tsx";
import { Swatch } from "./who.tsx";

const KINDS: Record<string, string> = { run: "ran", ready: "ready, no processor", wait: "waited", unknown: "unknown" };

const what = (one: { kind: string; reason: string | null; in_dpc: boolean }) =>
  `${KINDS[one.kind] ?? one.kind}${one.reason ? `: ${one.reason}` : ""}${one.kind === "wait" && one.in_dpc ? " (ended in a DPC)" : ""}`;

export function PathList(props: { path: CriticalPath; onPiece: (piece: PathPiece) => void; onClose: () => void }) {
  const { path } = props;
  const whole = path.range[1] - path.range[0];
  const names = new Map(path.threads.map((thread) => [thread.utid, thread]));
  const name = (utid: number) => {
    const thread = names.get(utid);
    return thread ? threadName(thread) : `thread ${utid}`;
  };
  const pick = (piece: PathPiece | null | undefined) => {
    if (!piece) return;
    look({ selection: [piece.start_ns, piece.start_ns + Math.max(1, piece.dur_ns)] });
    props.onPiece(piece);
  };
  const scale = scaleFor("ns", path.causes.map((one) => one.dur_ns));
  const oldest = [...path.pieces].reverse();
  return (
    <Box
      title={`What took the time: critical path of ${threadName(path.thread)}`}
      tools={
        <>
          <span class="muted">
            {span(path.range)}, {duration(whole)}
          </span>{" "}
          <button type="button" class="small" onClick={props.onClose}>
            Close
          </button>
        </>
      }
    >
      <p class="about">
        Its own running, its queueing, and for each wait the thread that ended it, transitively; all pieces together are as long as the range. Enter or double click selects the longest piece of a cause, or the piece, in every panel.
        {path.cut && " The path has more pieces than can be followed: its beginning is missing."}
      </p>
      <Grid
        label="What took the time, by cause"
        columns={[
          { id: "time", title: "Time", number: true, width: "110px", amounts: { unit: "ns", scale, of: (row) => path.causes[row]?.dur_ns } },
          { id: "share", title: "Share", number: true, width: "70px" },
          { id: "what", title: "What", width: "minmax(180px, 1fr)" },
          { id: "who", title: "Process, thread", width: "minmax(200px, 1.4fr)" },
          { id: "pieces", title: "Pieces", number: true, width: "70px" },
          { id: "leaf", title: "Innermost frame of the longest", width: "minmax(160px, 1.2fr)" },
        ]}
        count={path.causes.length}
        most={8}
        text={(row, column) => {
          const one = path.causes[row];
          if (!one) return "";
          return ["", percent(share(one.dur_ns, whole)), what(one), name(one.utid), count(one.pieces), visible(one.longest?.leaf ?? "–")][column] ?? "";
        }}
        draw={(row, column) => {
          const one = path.causes[row];
          if (one && column === 0) {
            return (
              <span class="share">
                <span class="fill" style={{ width: `${(100 * one.dur_ns) / Math.max(1, path.causes[0]?.dur_ns ?? 1)}%` }} />
                <span>{written(one.dur_ns, scale)}</span>
              </span>
            );
          }
          const known = column === 3 ? names.get(one?.utid ?? -1)?.process : column === 5 ? one?.longest?.leaf : null;
          return one && known ? (
            <span data-knows={known}>
              {column === 3 && <Swatch name={known} />}
              {column === 3 ? name(one.utid) : visible(known)}
            </span>
          ) : undefined;
        }}
        card={(row) => {
          const one = path.causes[row];
          if (!one) return null;
          return {
            id: `cause ${row} ${one.utid}`,
            kind: `On the critical path: ${what(one)}`,
            swatch: names.get(one.utid)?.process ?? "",
            title: name(one.utid),
            knows: names.get(one.utid)?.process ?? "",
            facts: [
              ["Time", duration(one.dur_ns)],
              ["Share of the path", percent(share(one.dur_ns, whole))],
              ["Pieces", count(one.pieces)],
              ["Longest", one.longest ? duration(one.longest.dur_ns) : "–"],
              ...(one.longest?.leaf ? [["There in", visible(one.longest.leaf)] as [string, string]] : []),
            ],
            actions: [
              { text: "Select the longest", primary: true, run: () => pick(one.longest) },
              { text: "Filter", run: () => addFilter({ kind: "thread", value: one.utid, label: name(one.utid) }) },
              { text: "Open stacks", run: () => { addFilter({ kind: "thread", value: one.utid, label: name(one.utid) }); look({ panel: "stacks" }); } },
            ],
          };
        }}
        onActivate={(row) => pick(path.causes[row]?.longest)}
      />
      <details>
        <summary>
          {path.pieces.length < path.total ? `The ${count(path.pieces.length)} longest of ${count(path.total)} pieces` : `${count(path.total)} pieces`}, in time order
        </summary>
        <Grid
          label="Pieces of the critical path"
          columns={[
            { id: "start", title: "Start", number: true, width: "130px", amounts: { unit: "moment", of: (row) => oldest[row]?.start_ns } },
            { id: "time", title: "Time", number: true, width: "100px", amounts: { unit: "ns", of: (row) => oldest[row]?.dur_ns } },
            { id: "depth", title: "Depth", doc: "Wake-ups away from the thread itself.", number: true, width: "60px" },
            { id: "what", title: "What", width: "minmax(160px, 1fr)" },
            { id: "who", title: "Process, thread", width: "minmax(200px, 1.4fr)" },
            { id: "cpu", title: "CPU", number: true, width: "60px" },
            { id: "leaf", title: "Innermost frame", width: "minmax(160px, 1.2fr)" },
          ]}
          count={oldest.length}
          most={12}
          text={(row, column) => {
            const one = oldest[row];
            if (!one) return "";
            return ["", "", String(one.depth), what(one), name(one.utid), one.cpu === null ? "–" : String(one.cpu), visible(one.leaf ?? "–")][column] ?? "";
          }}
          onActivate={(row) => pick(oldest[row])}
        />
      </details>
    </Box>
  );
}
