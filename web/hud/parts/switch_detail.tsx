/** One stretch of a thread in full: who readied it and from where, and where it had waited. */

import { duration } from "../../src/lib/format.ts";
import { moment, visible } from "../base/value.ts";
import { view } from "../state/view.ts";
import { useAnswer, type Answer } from "../wire/answer.ts";
import { ask } from "../wire/api.ts";
import type { FrameList, SwitchDetail as Detail } from "../wire/types.ts";
import { Sql } from "./box.tsx";
import { GuardMark } from "./guard_mark.tsx";
import { threadName } from "./lanes.tsx";

/** Asks for a row of `cswitch`. */
export function useSwitch(row: number | null, delay = 0): Answer<Detail> {
  const trace = view.value.trace;
  return useAnswer(row === null ? null : `switch ${trace} ${row}`, (signal) => ask("switch", { trace, row }, signal), delay);
}

export function readiedBy(detail: Detail): string {
  if (detail.readier) return `readied by ${threadName(detail.readier)}`;
  if (detail.in_dpc) return "readied in a DPC (a timer, the end of a transfer)";
  return detail.waited ? "who readied it was not recorded" : "it had been preempted: nobody readied it";
}

function Frames(props: { title: string; stack: FrameList | null; most?: number }) {
  if (!props.stack || props.stack.frames.length === 0) return <p class="muted">{props.title}: no stack was recorded.</p>;
  const frames = props.most ? props.stack.frames.slice(0, props.most) : props.stack.frames;
  const more = props.stack.more || frames.length < props.stack.frames.length;
  return (
    <div class="frames">
      <h3>{props.title}</h3>
      <ol tabIndex={props.most ? -1 : 0} aria-label={`${props.title}, innermost first`}>
        {frames.map((frame, at) => (
          <li key={at} class={`name ${frame.kind}`} data-knows={frame.label}>
            {visible(frame.label)} <GuardMark is={frame.security} />
          </li>
        ))}
      </ol>
      {more && <p class="muted">and more</p>}
    </div>
  );
}

export function SwitchDetail(props: { detail: Detail; short?: boolean }) {
  const { detail } = props;
  const most = props.short ? { most: 7 } : {};
  const time = (ns: number | null) => (ns === null ? "unknown" : duration(ns));
  return (
    <div class="switch">
      <p>
        {threadName(detail.thread)}: waited {time(detail.wait_ns)}
        {detail.reason ? ` (${detail.reason})` : ""}, ready {time(detail.ready_ns)}, then ran {time(detail.run_ns)} on CPU {detail.cpu} from {moment(detail.ts_ns, 1)} with priority {detail.priority}; {readiedBy(detail)}.
      </p>
      <div class="pair">
        <Frames title="Where it waited (stack of the new thread)" stack={detail.stack} {...most} />
        <Frames title="Who ended the wait (stack of ReadyThread)" stack={detail.ready_stack} {...most} />
      </div>
      {!props.short && <Sql sql={detail.sql} />}
    </div>
  );
}
