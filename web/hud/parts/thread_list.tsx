/** Threads by what they did, to choose those whose lanes are drawn. */

import { useEffect, useState } from "preact/hooks";
import { count, duration } from "../../src/lib/format.ts";
import { later } from "../base/awaited.ts";
import { counted, visible } from "../base/value.ts";
import { addFilter, look } from "../state/view.ts";
import { Grid, type GridColumn } from "./grid.tsx";
import { GuardMark } from "./guard_mark.tsx";
import { say } from "./live.tsx";
import { threadName } from "./lanes.tsx";
import type { ThreadLine, ThreadSort } from "../wire/types.ts";

interface Props {
  threads: ThreadLine[];
  total: number;
  sort: ThreadSort;
  search: string;
  /** utids on the lanes. */
  drawn: number[];
  onSort: (sort: ThreadSort) => void;
  onSearch: (text: string) => void;
  onToggle: (utid: number) => void;
  onPath: (utid: number) => void;
}

const COLUMNS: GridColumn[] = [
  { id: "drawn", title: "Lane", doc: "Whether its lane is drawn: Enter or a click changes it.", width: "52px" },
  { id: "process", title: "Process", width: "minmax(164px, 1.4fr)" },
  { id: "thread", title: "Thread", width: "minmax(104px, 1fr)" },
  { id: "run", title: "Run", doc: "Time on a processor, DPCs and ISRs included, cut at the ends of the range.", number: true, sortable: true, width: "84px" },
  { id: "ready", title: "Ready", doc: "Time ready without a processor, cut at the ends of the range.", number: true, sortable: true, width: "84px" },
  { id: "wait", title: "Wait", doc: "Time waiting until it was readied, cut at the ends of the range. Waits that the trace does not see end are not in it.", number: true, sortable: true, width: "84px" },
  { id: "open", title: "Waiting at end", doc: "Waiting within the range for something that does not come until the trace ends: not in Wait.", number: true, width: "96px" },
  { id: "switches", title: "Switches", doc: "How often it was switched in.", number: true, sortable: true, width: "84px" },
  { id: "reason", title: "Top wait reason", doc: "The KWAIT_REASON with most waiting time.", width: "minmax(140px, 1fr)" },
  { id: "readier", title: "Top readying process", doc: "The process whose threads ended most of its waits, by their time.", width: "minmax(164px, 1fr)" },
];

export function ThreadList(props: Props) {
  const { threads } = props;
  // Without ReadyThread events nobody knows when a wait ended: what is off a processor is neither ready nor waiting for certain.
  const readied = threads.some((one) => one.ready_ns > 0 || one.wait_ns > 0);
  const times: Record<string, ((one: ThreadLine) => number | null) | undefined> = {
    run: (one) => one.run_ns,
    ready: (one) => (readied ? one.ready_ns : null),
    wait: (one) => (readied ? one.wait_ns : null),
    open: (one) => one.open_wait_ns || null,
    switches: (one) => one.switches,
  };
  const columns = COLUMNS.map((column) => {
    const of = times[column.id];
    return of ? { ...column, amounts: { unit: column.id === "switches" ? "count" : "ns", of: (row: number) => (threads[row] ? of(threads[row]) : undefined) } } : column;
  });
  const [draft, setDraft] = useState(props.search);
  useEffect(() => {
    if (draft === props.search) return;
    return later(() => props.onSearch(draft), 250);
  }, [draft]);
  const drawn = new Set(props.drawn);
  const toggle = (row: number) => {
    const thread = threads[row];
    if (!thread) return;
    props.onToggle(thread.utid);
    say(`${threadName(thread)}: ${drawn.has(thread.utid) ? "off the lanes" : "on the lanes"}`);
  };
  return (
    <>
      <p class="about">
        <label>
          Search <input type="search" value={draft} placeholder="process, thread, id" onInput={(event) => setDraft(event.currentTarget.value)} />
        </label>{" "}
        {counted(props.total, "thread")}{threads.length < props.total ? `, the first ${count(threads.length)} are listed` : ""}
      </p>
      <Grid
        label="Threads by what they did"
        columns={columns}
        count={threads.length}
        most={8}
        sort={{ id: props.sort, down: true }}
        onSort={(id) => props.onSort(id as ThreadSort)}
        selected={(row) => drawn.has(threads[row]?.utid ?? -1)}
        card={(row) => {
          const one = threads[row];
          if (!one) return null;
          const name = `${visible(one.process)} (${one.pid ?? "?"}) ${one.tid ?? "?"}${one.name ? ` ${visible(one.name)}` : ""}`;
          return {
            id: `thread ${one.utid}`,
            kind: "Thread",
            swatch: one.process,
            title: name,
            knows: one.process,
            facts: [
              ["Run", duration(one.run_ns)],
              ["Wait", readied ? duration(one.wait_ns) : "not recorded"],
              ["Ready", readied ? duration(one.ready_ns) : "not recorded"],
              ["Longest wait", readied ? duration(one.wait_max_ns) : "not recorded"],
              ["Switches", count(one.switches)],
              ...(one.top_reason ? [["Most waits", `${one.top_reason[0]}, ${duration(one.top_reason[1])}`] as [string, string]] : []),
              ...(one.top_readier ? [["Woken by", `${visible(one.top_readier[0])}, ${duration(one.top_readier[2])}`] as [string, string]] : []),
            ],
            actions: [
              { text: "Critical path", primary: true, run: () => props.onPath(one.utid) },
              { text: "Filter", run: () => addFilter({ kind: "thread", value: one.utid, label: name }) },
              { text: "Exclude", run: () => addFilter({ kind: "thread", value: one.utid, label: name, not: true }) },
              { text: "Open stacks", run: () => { addFilter({ kind: "thread", value: one.utid, label: name }); look({ panel: "stacks" }); } },
              { text: drawn.has(one.utid) ? "Take off the lanes" : "Add to the lanes", run: () => toggle(row) },
            ],
          };
        }}
        onActivate={toggle}
        onKey={(event, row) => {
          if (event.key !== " ") return false;
          toggle(row);
          return true;
        }}
        text={(row, column) => {
          const one = threads[row];
          if (!one) return "";
          return (
            [
              drawn.has(one.utid) ? "yes" : "no",
              `${visible(one.process)} (${one.pid ?? "?"})`,
              `${one.tid ?? "?"}${one.name ? ` ${visible(one.name)}` : ""}`,
              "",
              "",
              "",
              "",
              "",
              one.top_reason ? `${one.top_reason[0]} (${duration(one.top_reason[1])})` : "–",
              one.top_readier ? `${visible(one.top_readier[0])} (${duration(one.top_readier[2])})` : "–",
            ][column] ?? ""
          );
        }}
        draw={(row, column) => {
          const one = threads[row];
          if (!one) return undefined;
          if (column === 0) {
            return (
              <span class="tick-box" onClick={() => toggle(row)}>
                <span aria-hidden="true">{drawn.has(one.utid) ? "☑" : "☐"}</span>
                <span class="hidden-text">{drawn.has(one.utid) ? "drawn" : "not drawn"}</span>
              </span>
            );
          }
          if (column !== 1) return undefined;
          return (
            <>
              <span data-knows={one.process}>{`${visible(one.process)} (${one.pid ?? "?"})`}</span> <GuardMark is={one.security} />
            </>
          );
        }}
      />
    </>
  );
}
