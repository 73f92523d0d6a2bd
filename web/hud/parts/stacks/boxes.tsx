/**
 * Boxes in rows on a canvas: flame graphs and icicles. Only rows in sight are drawn, boxes below half a pixel are not, text stands
 * where it fits. Keyboard: arrows move (up and down by level, left and right in a level), Enter opens, Escape goes out.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { themed } from "../../base/theme.ts";
import { visible } from "../../base/value.ts";
import { inkOn, paint, type Paint } from "./colors.ts";
import { font } from "../../base/colors.ts";

export interface Boxes {
  count: number;
  levels: number;
  /** Place, 0 to 1. */
  x0: ArrayLike<number>;
  x1: ArrayLike<number>;
  depth: ArrayLike<number>;
  label: (at: number) => string;
  color: (at: number, paint: Paint) => string;
  security: (at: number) => boolean;
  /** 1: matches the search, 0: does not; null: nobody searches. */
  hit: ((at: number) => boolean) | null;
  /** Drawn with stripes: waits. */
  striped?: (at: number) => boolean;
}

export interface BoxesProps {
  label: string;
  boxes: Boxes;
  /** Changes when boxes are others: the window is whole again. */
  id: string;
  /** Where to begin the zoom animation: the place of what was the whole before. */
  from?: [number, number] | null;
  up?: boolean;
  say: (at: number) => string;
  tip: (at: number) => ComponentChildren;
  knows: (at: number) => string;
  selected: number;
  onSelect: (at: number) => void;
  onOpen: (at: number) => void;
  onOut: () => void;
  onMenu: (at: number, x: number, y: number) => void;
}

export const ROW = 19;
const CHAR = 6.4;
const TIME = 220;

/** Boxes of each level from left to right. */
function byLevel(boxes: Boxes): Int32Array[] {
  const lists: number[][] = Array.from({ length: boxes.levels }, () => []);
  for (let at = 0; at < boxes.count; at += 1) lists[boxes.depth[at] ?? 0]?.push(at);
  return lists.map((list) => Int32Array.from(list.sort((a, b) => (boxes.x0[a] ?? 0) - (boxes.x0[b] ?? 0))));
}

/** The box of a level at a place; -1 if there is none. */
function boxAt(list: Int32Array | undefined, boxes: Boxes, x: number): number {
  if (!list) return -1;
  let low = 0;
  let high = list.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = list[middle] ?? 0;
    if (x < (boxes.x0[at] ?? 0)) high = middle - 1;
    else if (x >= (boxes.x1[at] ?? 0)) low = middle + 1;
    else return at;
  }
  return -1;
}

export function BoxCanvas(props: BoxesProps) {
  const { boxes } = props;
  const outer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null);
  const levels = useRef<{ of: Boxes | null; lists: Int32Array[] }>({ of: null, lists: [] });
  const shown = useRef<[number, number]>([0, 1]);
  const frame = useRef(0);
  const props_ = useRef(props);
  props_.current = props;
  if (levels.current.of !== boxes) levels.current = { of: boxes, lists: byLevel(boxes) };
  const height = Math.max(size[1], boxes.levels * ROW + 2);
  const top = (depth: number) => (props.up ? height - (depth + 1) * ROW : depth * ROW);

  const draw = () => {
    const [width, sight] = size;
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const scale = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * scale), Math.round(sight * scale)];
    if (element.width !== w || element.height !== h) {
      element.width = w;
      element.height = h;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, sight);
    context.font = font(11);
    context.textBaseline = "middle";
    const colors = paint();
    const scroll = outer.current?.scrollTop ?? 0;
    const [v0, v1] = shown.current;
    const stretch = width / Math.max(1e-12, v1 - v0);
    const total = Math.max(sight, boxes.levels * ROW + 2);
    for (let depth = 0; depth < boxes.levels; depth += 1) {
      const y = (props.up ? total - (depth + 1) * ROW : depth * ROW) - scroll;
      if (y < -ROW || y > sight) continue;
      let last = -1;
      for (const at of levels.current.lists[depth] ?? []) {
        const left = ((boxes.x0[at] ?? 0) - v0) * stretch;
        const right = ((boxes.x1[at] ?? 0) - v0) * stretch;
        if (right < 0 || left > width || right - left < 0.4 || right <= last + 0.2) continue;
        last = right;
        const x = Math.max(left, -2);
        const wide = Math.min(right, width + 2) - x;
        const hit = boxes.hit?.(at) ?? null;
        const fill = boxes.color(at, colors);
        context.globalAlpha = hit === false ? 0.32 : 1;
        context.fillStyle = fill;
        context.fillRect(x, y, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), ROW - 1);
        if (wide > 3 && (boxes.striped?.(at) || boxes.security(at))) {
          context.save();
          context.beginPath();
          context.rect(x, y, wide - 1, ROW - 1);
          context.clip();
          context.strokeStyle = boxes.security(at) ? colors.watched : colors.muted;
          context.globalAlpha *= boxes.security(at) ? 0.45 : 0.35;
          context.lineWidth = 1;
          context.beginPath();
          for (let s = x - ROW; s < x + wide; s += boxes.security(at) ? 9 : 6) {
            context.moveTo(s, y + ROW);
            context.lineTo(s + ROW, y);
          }
          context.stroke();
          context.restore();
        }
        if (hit) {
          context.strokeStyle = colors.accent;
          context.lineWidth = 2;
          context.strokeRect(x + 1, y + 1, Math.max(1, wide - 3), ROW - 3);
          context.fillStyle = colors.hit;
          context.fillRect(x, y + ROW - 4, Math.max(1, wide - 1), 3);
        }
        const security = boxes.security(at);
        if (security && wide > 2) {
          context.strokeStyle = colors.watched;
          context.lineWidth = 2;
          context.setLineDash([4, 2]);
          context.strokeRect(x + 1, y + 1, Math.max(1, wide - 3), ROW - 3);
          context.setLineDash([]);
        }
        if (wide > 24) {
          const room = Math.floor((wide - 8) / CHAR);
          let text = visible(boxes.label(at));
          if (security) text = `[S] ${text}`;
          // The function says more than its module when there is room for one of them.
          if (text.length > room && text.includes("!")) {
            const short = (security ? "[S] " : "") + text.slice(text.indexOf("!") + 1);
            if (!short.endsWith("?")) text = short;
          }
          if (text.length > room) text = room > 3 ? `${text.slice(0, room - 1)}…` : "";
          if (text) {
            context.fillStyle = inkOn(fill);
            context.fillText(text, x + 4, y + ROW / 2, wide - 6);
          }
        }
        if (at === props.selected) {
          context.globalAlpha = 1;
          context.strokeStyle = colors.accent;
          context.lineWidth = 2;
          context.strokeRect(x + 1, y + 1, Math.max(2, wide - 3), ROW - 3);
        }
      }
    }
    context.globalAlpha = 1;
  };
  const draw_ = useRef(draw);
  draw_.current = draw;

  const redraw = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => draw_.current());
  };

  /** Moves the window, in steps unless the reader wants no motion. */
  const animate = (to: [number, number]) => {
    cancelAnimationFrame(frame.current);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      shown.current = to;
      redraw();
      return;
    }
    const from = shown.current;
    const begin = performance.now();
    const step = (now: number) => {
      const t = Math.min(1, Math.max(0, (now - begin) / TIME));
      const e = 1 - (1 - t) ** 3;
      shown.current = [from[0] + (to[0] - from[0]) * e, from[1] + (to[1] - from[1]) * e];
      draw_.current();
      if (t < 1) frame.current = requestAnimationFrame(step);
    };
    frame.current = requestAnimationFrame(step);
  };

  useLayoutEffect(() => {
    const element = outer.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize([element.clientWidth, element.clientHeight]));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    shown.current = props.from ?? [0, 1];
    if (outer.current) outer.current.scrollTop = props.up ? outer.current.scrollHeight : 0;
    if (props.from) animate([0, 1]);
  }, [props.id]);
  useEffect(redraw);
  useEffect(() => themed.subscribe(redraw), []);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const hitTest = (event: MouseEvent): number => {
    const rect = canvas.current?.getBoundingClientRect();
    if (!rect) return -1;
    const y = event.clientY - rect.top + (outer.current?.scrollTop ?? 0);
    const depth = props.up ? Math.floor((height - y) / ROW) : Math.floor(y / ROW);
    const [v0, v1] = shown.current;
    return boxAt(levels.current.lists[depth], boxes, v0 + ((event.clientX - rect.left) / rect.width) * (v1 - v0));
  };
  const open = (at: number) => {
    if (at < 0) return;
    animate([boxes.x0[at] ?? 0, boxes.x1[at] ?? 1]);
    props.onOpen(at);
  };
  const select = (at: number) => {
    if (at < 0) return;
    props.onSelect(at);
    const element = outer.current;
    const y = top(boxes.depth[at] ?? 0);
    if (element && y < element.scrollTop) element.scrollTop = y;
    else if (element && y + ROW > element.scrollTop + element.clientHeight) element.scrollTop = y + ROW - element.clientHeight;
  };
  const middle = (at: number) => ((boxes.x0[at] ?? 0) + (boxes.x1[at] ?? 0)) / 2;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = props.selected >= 0 && props.selected < boxes.count ? props.selected : -1;
    const { lists } = levels.current;
    const depth = at < 0 ? 0 : (boxes.depth[at] ?? 0);
    const level = lists[depth];
    const place = level && at >= 0 ? level.indexOf(at) : -1;
    const outwards = () => select(boxAt(lists[depth - 1], boxes, middle(at)));
    const inwards = () => {
      let best = -1;
      for (const one of lists[depth + 1] ?? []) {
        const inside = (boxes.x0[one] ?? 0) >= (boxes.x0[at] ?? 0) - 1e-9 && (boxes.x1[one] ?? 0) <= (boxes.x1[at] ?? 0) + 1e-9;
        if (inside && (best < 0 || (boxes.x1[one] ?? 0) - (boxes.x0[one] ?? 0) > (boxes.x1[best] ?? 0) - (boxes.x0[best] ?? 0))) best = one;
      }
      select(best);
    };
    const moves: Record<string, () => void> = {
      ArrowUp: props.up ? inwards : outwards,
      ArrowDown: props.up ? outwards : inwards,
      ArrowLeft: () => select(level?.[place - 1] ?? -1),
      ArrowRight: () => select(level?.[place + 1] ?? -1),
      Home: () => select(lists[0]?.[0] ?? -1),
      Enter: () => open(at),
      Escape: props.onOut,
    };
    const move = moves[event.key];
    if (move) {
      if (at < 0 && event.key.startsWith("Arrow")) select(lists[0]?.[0] ?? -1);
      else move();
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      const rect = canvas.current?.getBoundingClientRect();
      if (at >= 0 && rect) props.onMenu(at, rect.left + 40, rect.top + Math.max(20, Math.min(rect.height - 40, top(depth) - (outer.current?.scrollTop ?? 0))));
      event.preventDefault();
    }
  };
  const tip = hover && hover.at >= 0 && hover.at < boxes.count ? hover : null;
  return (
    <div class="boxes">
      <div
        class="boxes-scroll"
        ref={outer}
        role="application"
        tabIndex={0}
        aria-label={`${props.label}. Arrow keys move among boxes, Enter zooms in, Escape goes out.`}
        data-part="boxes"
        onScroll={redraw}
        onKeyDown={onKeyDown}
        onMouseMove={(event) => setHover({ at: hitTest(event), x: event.clientX, y: event.clientY })}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => select(hitTest(event))}
        onDblClick={(event) => open(hitTest(event))}
        onContextMenu={(event) => {
          const at = hitTest(event);
          if (at < 0) return;
          event.preventDefault();
          select(at);
          props.onMenu(at, event.clientX, event.clientY);
        }}
      >
        <canvas ref={canvas} style={{ width: "100%", height: `${size[1]}px` }} />
        <div class="boxes-sheet" style={{ height: `${Math.max(0, boxes.levels * ROW + 2 - size[1])}px` }} />
      </div>
      {tip && (
        <div class="boxes-tip" role="presentation" data-knows={props.knows(tip.at)} style={{ left: `${Math.min(tip.x + 14, innerWidth - 360)}px`, top: `${tip.y > innerHeight - 220 ? tip.y - 190 : tip.y + 18}px` }}>
          {props.tip(tip.at)}
        </div>
      )}
      <div class="hidden-text" role="status" aria-live="polite">
        {props.selected >= 0 && props.selected < boxes.count ? props.say(props.selected) : ""}
      </div>
    </div>
  );
}
