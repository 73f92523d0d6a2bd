/** The timeline above all panels: lanes, the axis, the whole trace as a strip; what is selected in it is what panels count. */

import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { themed } from "../base/theme.ts";
import { amount } from "../base/value.ts";
import type { Panel } from "../app/panel.ts";
import { notesOf } from "../state/notes_of.ts";
import { selectHit } from "../state/select.ts";
import { addFilter, set, setting, view, whole, zoomTo, type Range } from "../state/view.ts";
import { data, error, busy, findings, overview, startFeed, want } from "./timeline/feed.ts";
import { Bar } from "./timeline/bar.tsx";
import { colors, type Colors } from "./timeline/colors.ts";
import { DEFAULTS, heightOf, isShown, layout, levelOf, withFindings, type Row, type Settings } from "./timeline/layout.ts";
import { ghosts, startGhost } from "./timeline/ghost.ts";
import { LaneMenu } from "./timeline/menu.tsx";
import { beside } from "./timeline/model.ts";
import { frame, HEAD, OVERVIEW, picture, strip } from "./timeline/paint.ts";
import { ContextMenu, Tip } from "./timeline/over.tsx";
import { reading, speak, type Reading } from "./timeline/read.ts";
import { Titles } from "./timeline/titles.tsx";
import { LanesTable } from "./timeline/table.tsx";
import { cursor, drawn, live, panBy, select, show, startWindow, zoomBy } from "./timeline/window.ts";

const ABOUT = "Timeline. A and D pan, W and S zoom, arrows move the cursor, Shift with arrows moves the selection's end, Enter zooms to the selection, f keeps the process under the cursor alone.";

interface Menu {
  x: number;
  y: number;
  reading: Reading;
}

/** Least height, and what other panels leave it: a third of the window, and not less than this. */
const LEAST = 120;
const ABOVE = 232;
const PART = 0.34;
/** In a low window no more than this part of it. */
const LOW = 0.42;
/** A lane that would stand there in part is left to scrolling, if no more than this is lost. */
const SLICE = 24;

/** So high that lanes stand there whole, if that is possible. */
function fitting(rows: Row[], tall: number, most: number): number {
  if (tall + HEAD + 2 <= most) return tall + HEAD + 2;
  const whole = rows.reduce((low, row) => (row.y + row.height + HEAD + 2 <= most ? Math.max(low, row.y + row.height + HEAD + 2) : low), 0);
  return most - whole <= SLICE ? whole : most;
}

export function Timeline(props: { panel: Panel }) {
  const panel = props.panel.id;
  const settings = { ...DEFAULTS, ...setting<Settings>("timeline", DEFAULTS) };
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const menu = useSignal<Menu | null>(null);
  const lanesOpen = useSignal(false);
  const spoken = useSignal("");
  const now = data.value;
  const lanes = useMemo(() => (now ? withFindings(now, findings.value, notesOf()) : []), [now, findings.value, view.value.settings["notes"]]);
  const rows = useMemo(() => (now ? layout(lanes, now, settings, panel) : []), [lanes, JSON.stringify(settings), panel, beside.value]);
  const tall = heightOf(rows);
  const room = useSignal(320);
  useEffect(() => {
    // On the first panel the axis takes what the answer leaves of the window.
    const measure = () => {
      const top = box.current?.offsetTop ?? 0;
      const main = document.getElementById("panel");
      if (main) room.value = Math.max(LEAST + 100, main.clientHeight - top - 8);
    };
    measure();
    const observer = new ResizeObserver(measure);
    const main = document.getElementById("panel");
    if (main) observer.observe(main);
    const above = document.getElementById("findings");
    if (above) observer.observe(above);
    return () => observer.disconnect();
  }, [settings.open, settings.table]);
  const wanted = panel === "overview" ? Math.min(room.value, tall + HEAD + 2) : fitting(rows, tall, Math.max(Math.min(ABOVE, Math.round(innerHeight * LOW)), Math.round(innerHeight * PART)));
  const height = Math.max(LEAST, settings.height > 0 ? Math.min(settings.height, innerHeight * 0.6) : now ? wanted : ABOVE);

  useEffect(() => {
    const stops = [startWindow(), startFeed(), startGhost()];
    const keys = bind("Timeline", [
      { key: "a", about: "pan left", run: () => panBy(-0.15) },
      { key: "d", about: "pan right", run: () => panBy(0.15) },
      { key: "w", about: "zoom in around the cursor", run: () => zoomBy(0.7, around()) },
      { key: "s", about: "zoom out", run: () => zoomBy(1 / 0.7, around()) },
      { key: "t", about: "to the timeline: there arrows move the cursor, Shift+arrows the selection, Enter zooms, f keeps the process alone", run: () => canvas.current?.focus() },
    ]);
    return () => {
      for (const stop of stops) stop();
      keys();
    };
  }, []);

  // The picture changes with data, layout, settings and colours; frames come from it.
  const state = useRef<{ rows: Row[]; image: HTMLCanvasElement | null; strip: HTMLCanvasElement | null; colors: Colors | null; draw: () => void }>({ rows, image: null, strip: null, colors: null, draw: () => undefined });
  state.current.rows = rows;
  useEffect(() => {
    let asked = 0;
    const draw = () => {
      asked = 0;
      const [element, around] = [canvas.current, box.current];
      const context = element?.getContext("2d");
      if (!element || !context || !around) return;
      const started = performance.now();
      const scale = devicePixelRatio || 1;
      const [width, height] = [element.clientWidth, element.clientHeight];
      if (element.width !== Math.round(width * scale) || element.height !== Math.round(height * scale)) {
        element.width = Math.round(width * scale);
        element.height = Math.round(height * scale);
      }
      const c = (state.current.colors ??= colors());
      frame(context, { width, height, scale, scroll: around.scrollTop, shown: live.peek(), whole: whole.peek(), selection: drawn.peek(), cursor: cursor.peek()?.ns ?? null, rows: state.current.rows, focus: cursor.peek()?.pointer === false ? (cursor.peek()?.lane ?? null) : null, data: data.peek(), image: state.current.image, overview: state.current.strip, finding: view.peek().finding, ghosts: ghosts.peek() }, c);
      // For the benchmark in web/bench.
      element.dataset["frameMs"] = (performance.now() - started).toFixed(2);
    };
    const request = () => {
      if (!asked) asked = requestAnimationFrame(draw);
    };
    state.current.draw = request;
    const stop = effect(() => {
      void [live.value, drawn.value, cursor.value, whole.value, view.value.finding, ghosts.value];
      request();
    });
    const resize = new ResizeObserver(() => {
      want(Math.round((canvas.current?.clientWidth ?? 0) * Math.min(2, devicePixelRatio || 1)), settings.color === "mode");
      request();
    });
    if (canvas.current) resize.observe(canvas.current);
    return () => {
      stop();
      resize.disconnect();
      cancelAnimationFrame(asked);
    };
  }, [settings.open, settings.table]);
  useEffect(() => want(Math.round((canvas.current?.clientWidth ?? 0) * Math.min(2, devicePixelRatio || 1)), settings.color === "mode"), [settings.color, settings.open]);
  useEffect(() => {
    const c = (state.current.colors = colors());
    state.current.image = now ? picture(now, rows, tall, devicePixelRatio || 1, settings, view.value.filters, c) : null;
    state.current.strip = overview.value ? strip(overview.value, c) : null;
    state.current.draw();
  }, [now, rows, overview.value, themed.value, view.value.filters, settings.open, settings.table]);

  const width = () => canvas.current?.clientWidth ?? 1;
  const time = (x: number) => live.value[0] + (x / width()) * (live.value[1] - live.value[0]);
  const around = () => cursor.peek()?.ns ?? (live.peek()[0] + live.peek()[1]) / 2;
  const rowAt = (y: number) => {
    const inside = y - HEAD + (box.current?.scrollTop ?? 0);
    return y < HEAD ? undefined : rows.find((row) => inside >= row.y - 1 && inside < row.y + row.height + 2);
  };
  const readAt = (ns: number, row: Row | undefined, y: number | null = null): Reading | null => {
    const level = row && y !== null ? Math.floor((y - HEAD + (box.current?.scrollTop ?? 0) - row.y) / levelOf(row)) : null;
    return now ? reading(now, row, ns, ((live.value[1] - live.value[0]) / width()) * 4, level) : null;
  };
  const keep = (one: Reading, not: boolean) => void (one.process && addFilter({ kind: "process", value: one.process.upid, label: one.process.name, ...(not ? { not } : {}) }));

  // Pointer. What a drag does depends on where and with which button it began.
  const drag = useRef<{ kind: "select" | "edge" | "pan" | "strip"; x: number; ns: number; window: Range; moved: boolean; fixed: number } | null>(null);
  const position = (event: MouseEvent) => {
    const rect = canvas.current?.getBoundingClientRect();
    return { x: event.clientX - (rect?.left ?? 0), y: event.clientY - (rect?.top ?? 0) };
  };
  const toStrip = (x: number) => {
    const [first, end] = whole.value;
    const [from, to] = live.value;
    const middle = first + (x / width()) * (end - first);
    show([middle - (to - from) / 2, middle + (to - from) / 2]);
  };
  const down = (event: PointerEvent) => {
    menu.value = null;
    if (event.button > 1) return;
    const { x, y } = position(event);
    canvas.current?.setPointerCapture(event.pointerId);
    const selection = drawn.value;
    const px = (ns: number) => ((ns - live.value[0]) / (live.value[1] - live.value[0])) * width();
    const edge = selection && event.button === 0 && y > OVERVIEW ? (Math.abs(px(selection[0]) - x) < 5 ? 1 : Math.abs(px(selection[1]) - x) < 5 ? 0 : -1) : -1;
    const fixed = selection && edge === 0 ? selection[0] : selection && edge === 1 ? selection[1] : time(x);
    drag.current = { kind: y < OVERVIEW ? "strip" : event.button === 1 || event.altKey ? "pan" : edge >= 0 ? "edge" : "select", x, ns: time(x), window: live.value, moved: false, fixed };
    if (event.button === 1) event.preventDefault();
    if (y < OVERVIEW) toStrip(x);
  };
  const move = (event: PointerEvent) => {
    const { x, y } = position(event);
    const row = rowAt(y);
    cursor.value = { ns: time(x), lane: row?.id ?? null, x: event.clientX, y: event.clientY, pointer: true };
    const one = drag.current;
    if (!one) return;
    if (Math.abs(x - one.x) > 3) one.moved = true;
    if (!one.moved) return;
    if (one.kind === "strip") toStrip(x);
    else if (one.kind === "pan") {
      const by = ((one.x - x) / width()) * (one.window[1] - one.window[0]);
      show([one.window[0] + by, one.window[1] + by]);
    } else select([one.fixed, Math.min(live.value[1], Math.max(live.value[0], time(x)))], false);
  };
  const up = (event: PointerEvent) => {
    const one = drag.current;
    drag.current = null;
    if (!one || one.kind === "strip" || one.kind === "pan") return;
    const { x, y } = position(event);
    if (one.moved) {
      select([one.fixed, Math.min(live.value[1], Math.max(live.value[0], time(x)))], true);
      return;
    }
    const found = readAt(time(x), rowAt(y), y);
    if (found?.mark?.finding) void selectHit(found.mark.finding.id, found.mark.finding.hit);
    else if (found?.mark && found.mark.to > found.mark.from) select([found.mark.from, found.mark.to], true);
    else if (drawn.value && (time(x) < drawn.value[0] || time(x) > drawn.value[1])) select(null, true);
  };
  // Not passive: the page must not zoom or scroll when the timeline does.
  useEffect(() => {
    const element = canvas.current;
    const wheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoomBy(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.0035), time(position(event).x));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        panBy((event.deltaX || event.deltaY) / width());
      }
    };
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, [settings.open, settings.table]);

  const say = (ns: number, lane: string | null) => {
    cursor.value = { ns, lane, x: 0, y: 0, pointer: false };
    const one = readAt(ns, rows.find((row) => row.id === lane));
    spoken.value = one ? speak(one) : "";
  };
  const key = (event: KeyboardEvent) => {
    const [from, to] = live.value;
    const ns = Math.min(to, Math.max(from, around()));
    const lane = cursor.value?.lane ?? rows.find((row) => row.lane)?.id ?? null;
    const step = (event.ctrlKey ? 10 : 1) * Math.max(1, (to - from) / 100);
    const selection: Range = drawn.value ?? [ns, ns + 1];
    const at = rows.findIndex((row) => row.id === lane);
    const to_lane = (by: number) => {
      const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
      if (!next) return;
      say(ns, next.id);
      if (box.current) box.current.scrollTop = Math.max(0, Math.min(box.current.scrollTop, next.y), next.y + next.height + HEAD - box.current.clientHeight);
    };
    const moves: Record<string, () => void> = {
      ArrowLeft: () => say(Math.max(from, ns - step), lane),
      ArrowRight: () => say(Math.min(to, ns + step), lane),
      ArrowUp: () => to_lane(-1),
      ArrowDown: () => to_lane(1),
      Home: () => say(from, lane),
      End: () => say(to, lane),
      "Shift+ArrowLeft": () => select([selection[0], Math.max(selection[0] + 1, selection[1] - step)], false),
      "Shift+ArrowRight": () => select([selection[0], selection[1] + step], false),
      "Shift+ArrowUp": () => select([selection[0] - step, selection[1]], false),
      "Shift+ArrowDown": () => select([Math.min(selection[1] - 1, selection[0] + step), selection[1]], false),
      Enter: () => {
        const found = readAt(ns, rows[at]);
        if (drawn.value) zoomTo(drawn.value);
        else if (found?.mark?.finding) void selectHit(found.mark.finding.id, found.mark.finding.hit);
        else if (found?.mark && found.mark.to > found.mark.from) select([found.mark.from, found.mark.to], true);
        else zoomBy(0.5, ns);
      },
      Escape: () => select(null, true),
      "+": () => zoomBy(0.7, ns),
      "-": () => zoomBy(1 / 0.7, ns),
      a: () => panBy(-0.15),
      d: () => panBy(0.15),
      w: () => zoomBy(0.7, ns),
      s: () => zoomBy(1 / 0.7, ns),
      f: () => {
        const found = readAt(ns, rows[at]);
        if (found) keep(found, false);
      },
    };
    const pressed = moves[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
    if (!pressed || event.altKey || event.metaKey || (event.ctrlKey && !event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    event.stopPropagation();
    pressed();
  };
  const resize = (event: PointerEvent) => {
    const [start, tallness] = [event.clientY, height];
    const handle = event.currentTarget as HTMLElement;
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => set<Settings>("timeline", { height: Math.max(LEAST, Math.round(tallness + moved.clientY - start)) });
    handle.onpointerup = () => (handle.onpointermove = null);
  };

  // The button of the query is outside of the lanes: what counts is where the cursor was last.
  const last = useRef<string | null>(null);
  if (cursor.value?.lane) last.current = cursor.value.lane;
  const hoverRow = rows.find((row) => row.id === cursor.value?.lane);
  const hover = settings.open && !settings.table && cursor.value && !drag.current ? readAt(cursor.value.ns, hoverRow, cursor.value.pointer ? cursor.value.y - (canvas.current?.getBoundingClientRect().top ?? 0) : null) : null;
  const tip = cursor.value?.pointer && hover && hover.lines.length > 0 && !menu.value ? cursor.value : null;
  const c = state.current.colors;
  return (
    <section class="timeline" aria-label="Timeline" data-part="timeline" data-ready={now && !busy.value ? "true" : "false"}>
      <Bar
        settings={settings}
        rows={rows}
        now={now}
        colors={c}
        sql={hoverSql(rows, last.current)}
        error={error.value}
        lanesOpen={lanesOpen.value}
        onLanes={() => (lanesOpen.value = !lanesOpen.value)}
        zoom={(factor) => zoomBy(factor, around())}
      />
      {lanesOpen.value && settings.open && now && <LaneMenu lanes={lanes} empty={now.empty} settings={settings} panel={panel} />}
      {settings.open && settings.table && (
        <div class="tl-table" style={{ height: `${height}px` }}>
          <LanesTable hidden={(lane) => !isShown(lane, settings, panel)} />
        </div>
      )}
      {settings.open && !settings.table && (
        <div class="tl-box" ref={box} style={{ height: `${height}px` }} onScroll={() => state.current.draw()}>
          <div class="tl-inner" style={{ height: `${Math.max(height - 2, tall + HEAD)}px` }}>
            <div class="tl-stick" style={{ height: `${height - 2}px` }}>
              <div class="tl-corner" style={{ height: `${HEAD}px` }}>
                <span style={{ height: `${OVERVIEW}px` }}>Whole trace</span>
                <span>{busy.value ? "reading …" : `${amount(live.value[1] - live.value[0], "ns")} shown`}</span>
              </div>
              <canvas
                ref={canvas}
                tabIndex={0}
                role="application"
                aria-roledescription="timeline"
                aria-label={ABOUT}
                onPointerDown={down}
                onPointerMove={move}
                onPointerUp={up}
                onPointerLeave={() => {
                  if (!drag.current && cursor.value?.pointer) cursor.value = null;
                }}
                onDblClick={(event) => {
                  const ns = time(position(event).x);
                  if (drawn.value) zoomTo(drawn.value);
                  else zoomBy(0.4, ns);
                }}
                onContextMenu={(event) => {
                  const { x, y } = position(event);
                  const found = readAt(time(x), rowAt(y), y);
                  if (!found) return;
                  event.preventDefault();
                  menu.value = { x: Math.min(event.clientX, innerWidth - 240), y: Math.min(event.clientY, innerHeight - 130), reading: found };
                }}
                onFocus={() => cursor.value === null && say((live.value[0] + live.value[1]) / 2, rows.find((row) => row.lane)?.id ?? null)}
                onKeyDown={key}
              />
            </div>
            <Titles rows={rows} settings={settings} />
          </div>
        </div>
      )}
      {settings.open && (
        <div
          class="tl-handle"
          role="separator"
          tabIndex={0}
          aria-orientation="horizontal"
          aria-label="Height of the timeline"
          aria-valuenow={Math.round(height)}
          aria-valuemin={LEAST}
          aria-valuemax={900}
          onPointerDown={resize}
          onKeyDown={(event) => {
            const by = event.key === "ArrowDown" ? 20 : event.key === "ArrowUp" ? -20 : 0;
            if (by) {
              event.preventDefault();
              event.stopPropagation();
              set<Settings>("timeline", { height: Math.max(LEAST, Math.min(900, height + by)) });
            }
          }}
        />
      )}
      <span class="hidden-text" role="status" aria-live="polite" data-part="timeline-spoken">
        {spoken.value}
      </span>
      {tip && hover && <Tip x={tip.x} y={tip.y} reading={hover} colors={c} />}
      {menu.value && (
        <ContextMenu
          {...menu.value}
          filter={keep}
          close={(back) => {
            menu.value = null;
            if (back) canvas.current?.focus();
          }}
        />
      )}
    </section>
  );
}

/** The query behind the lane under the cursor, else those of all lanes that have one. */
function hoverSql(rows: Row[], lane: string | null): string | null {
  const found = rows.find((row) => row.id === lane && row.lane?.sql) ?? rows.find((row) => row.lane?.kind === "process") ?? rows.find((row) => row.lane?.sql);
  return found?.lane?.sql ?? null;
}
