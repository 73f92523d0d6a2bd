/** Lanes of threads over time, for pointer and keys: what each did, who woke whom, and a critical path across them. */

import { useEffect, useRef, useState } from "preact/hooks";
import { duration } from "../../src/lib/format.ts";
import { themed } from "../base/theme.ts";
import { moment, visible } from "../base/value.ts";
import { look, shown, view, whole, zoomTo, type Range } from "../state/view.ts";
import type { PathPiece, Thread } from "../wire/types.ts";
import { GuardMark } from "./guard_mark.tsx";
import { AXIS, draw, height, LANE, STATES, type Pieces } from "./lanes_draw.ts";
import { say } from "./live.tsx";
import { Swatch } from "./who.tsx";

export const threadName = (thread: Thread) =>
  `${visible(thread.process)} (${thread.pid ?? "?"}) ${thread.tid ?? "?"}${thread.name ? ` ${visible(thread.name)}` : ""}`;

/** What a piece is, in words. */
export function describe(pieces: Pieces, piece: number): string {
  const lane = pieces.lanes[pieces.lane[piece] ?? 0];
  if (!lane) return "";
  const state = pieces.state[piece] ?? 3;
  const get = (name: string) => pieces.rows.get(piece, name);
  const reason = pieces.reasons[pieces.reason[piece] ?? -1];
  const open = get("open") === true;
  const step = Math.max(1, pieces.dur[piece] ?? 1);
  const parts = [
    threadName(lane.thread),
    pieces.bucket === null ? `${STATES[state]} for ${duration(pieces.dur[piece] ?? 0)}${open ? " (its end is not in the trace)" : ""}` : `${STATES[state]} for ${duration(pieces.dur[piece] ?? 0)} of ${duration(pieces.bucket)}`,
    `from ${moment(pieces.start[piece] ?? 0, step)}`,
  ];
  if (reason) parts.push(state === 3 ? `${reason}: waiting or ready: no ReadyThread event was recorded` : reason);
  if (typeof get("cpu") === "number") parts.push(`CPU ${get("cpu")}`);
  if (pieces.bucket === null && typeof get("priority") === "number") parts.push(`priority ${get("priority")}`);
  return parts.join(", ");
}

interface Props {
  pieces: Pieces;
  path: PathPiece[];
  arrows: boolean;
  focus: number | null;
  onFocus: (piece: number | null) => void;
  /** The pointer rests on it. */
  onHover: (piece: number | null, x: number, y: number) => void;
  onPath: (utid: number) => void;
  onDrop: ((utid: number) => void) | null;
  onWidth: (width: number) => void;
}

export function Lanes(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState<Range | null>(null);
  const began = useRef<{ x: number; ns: number } | null>(null);
  const { pieces } = props;
  const range = shown.value;
  const length = Math.max(1, range[1] - range[0]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      setWidth(element.clientWidth);
      props.onWidth(element.clientWidth);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const redraw = themed.value;
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      if (canvas.current) draw(canvas.current, { pieces, range, selection: view.value.selection, path: props.path, arrows: props.arrows, focus: props.focus, drag });
    });
    return () => cancelAnimationFrame(frame);
  }, [pieces, range[0], range[1], view.value.selection, props.path, props.arrows, props.focus, drag, width, redraw]);

  const time = (x: number) => range[0] + (x / Math.max(1, width)) * length;
  const clip = ([from, to]: Range): Range => {
    const size = Math.min(to - from, whole.value[1] - whole.value[0]);
    const at = Math.max(whole.value[0], Math.min(from, whole.value[1] - size));
    return [Math.floor(at), Math.ceil(at + size)];
  };
  const zoom = (factor: number, about: number) => {
    const size = Math.max(100, length * factor);
    const part = (about - range[0]) / length;
    zoomTo(clip([about - part * size, about + (1 - part) * size]));
  };
  const go = (piece: number | null) => {
    props.onFocus(piece);
    if (piece !== null) say(describe(pieces, piece));
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { focus } = props;
    const lane = focus === null ? 0 : (pieces.lane[focus] ?? 0);
    const middle = (range[0] + range[1]) / 2;
    const begin = pieces.first[lane] ?? 0;
    const end = (pieces.first[lane + 1] ?? begin + 1) - 1;
    const to = (other: number) => {
      const target = Math.max(0, Math.min(pieces.lanes.length - 1, other));
      const at = focus === null ? range[0] : Math.max(range[0], pieces.start[focus] ?? 0);
      return pieces.at(target, at) ?? pieces.first[target] ?? null;
    };
    const about = focus === null ? middle : Math.max(range[0], Math.min(range[1], pieces.start[focus] ?? middle));
    const moves: Record<string, () => void> = {
      ArrowRight: () => go(focus === null ? begin : Math.min(end, focus + 1)),
      ArrowLeft: () => go(focus === null ? begin : Math.max(begin, focus - 1)),
      ArrowDown: () => go(to(lane + 1)),
      ArrowUp: () => go(to(lane - 1)),
      Home: () => go(begin),
      End: () => go(end),
      "+": () => zoom(0.5, about),
      "-": () => zoom(2, about),
      w: () => zoom(0.5, about),
      s: () => zoom(2, about),
      a: () => zoomTo(clip([range[0] - length / 4, range[1] - length / 4])),
      d: () => zoomTo(clip([range[0] + length / 4, range[1] + length / 4])),
      Enter: () => {
        if (focus !== null) look({ selection: [pieces.start[focus] ?? 0, pieces.end(focus)] });
      },
      p: () => {
        const utid = pieces.lanes[lane]?.thread.utid;
        if (utid !== undefined) props.onPath(utid);
      },
      Escape: () => props.onFocus(null),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  };
  const hit = (event: PointerEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const lane = Math.floor((event.clientY - box.top) / LANE);
    return lane < 0 || lane >= pieces.lanes.length ? null : pieces.at(lane, time(event.clientX - box.left));
  };
  const pointed = (event: PointerEvent) => event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  return (
    <div class="lanes">
      <ul class="lane-names" style={{ paddingBottom: `${AXIS}px` }}>
        {pieces.lanes.map(({ thread }) => (
          <li key={thread.utid} style={{ height: `${LANE}px` }}>
            <Swatch name={thread.process} />
            <span class="name" data-knows={thread.process} title={threadName(thread)}>
              {visible(thread.process)}
            </span>{" "}
            <span>{thread.tid ?? "?"}</span>
            <GuardMark is={thread.security} />
            <span class="grow" />
            <button type="button" class="small" title="Critical path of this thread over the selected range, else what is shown (p)" aria-label={`Critical path of ${threadName(thread)}`} onClick={() => props.onPath(thread.utid)}>
              Path
            </button>
            {props.onDrop && (
              <button type="button" class="small" aria-label={`Take ${threadName(thread)} off the lanes`} onClick={() => props.onDrop?.(thread.utid)}>
                ✕
              </button>
            )}
          </li>
        ))}
      </ul>
      <canvas
        ref={canvas}
        data-part="lanes"
        style={{ height: `${height(pieces.lanes.length)}px` }}
        tabIndex={0}
        role="application"
        aria-label="States of threads over time. Up and down change the thread, left and right go from state to state, Enter selects its time, p shows the critical path, w and s zoom, a and d pan. The table has the same figures."
        onKeyDown={keyed}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          began.current = { x: event.clientX, ns: time(pointed(event)) };
          canvas.current?.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (began.current && Math.abs(event.clientX - began.current.x) > 3) {
            const now = time(Math.max(0, Math.min(width, pointed(event))));
            setDrag([Math.floor(Math.min(began.current.ns, now)), Math.ceil(Math.max(began.current.ns, now))]);
            props.onHover(null, 0, 0);
          } else if (!began.current) props.onHover(hit(event), event.clientX, event.clientY);
        }}
        onPointerUp={(event) => {
          if (drag) look({ selection: drag });
          else if (began.current) props.onFocus(hit(event));
          began.current = null;
          setDrag(null);
        }}
        onPointerCancel={() => {
          began.current = null;
          setDrag(null);
        }}
        onPointerLeave={() => props.onHover(null, 0, 0)}
        onDblClick={(event) => {
          const piece = hit(event as unknown as PointerEvent);
          if (piece !== null) zoomTo(clip([pieces.start[piece] ?? 0, pieces.end(piece)]));
        }}
        onWheel={(event) => {
          if (!event.ctrlKey) return;
          event.preventDefault();
          const box = canvas.current?.getBoundingClientRect();
          zoom(event.deltaY < 0 ? 0.7 : 1.4, time(event.clientX - (box?.left ?? 0)));
        }}
      />
    </div>
  );
}
