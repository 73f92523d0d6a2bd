/** What stands over the timeline: the values under the cursor, and what can be done with them. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { zoomTo } from "../../state/view.ts";
import { bandColor, type Colors } from "./colors.ts";
import type { Reading } from "./read.ts";
import { drawn } from "./window.ts";

export function Tip(props: { x: number; y: number; reading: Reading; colors: Colors | null }) {
  const { reading, colors, x, y } = props;
  return (
    <div class="tl-tip" style={{ left: `${x > innerWidth - 340 ? Math.max(0, x - 330) : x + 14}px`, top: `${y + 16}px` }}>
      <b>{reading.title}</b>
      <div class="muted">{reading.when}</div>
      <table>
        <tbody>
          {reading.lines.slice(0, 9).map((line) => (
            <tr key={`${line.name} ${line.index}`}>
              <td>
                {line.band && colors && <i style={{ background: bandColor(line.band, line.index, colors) }} />} {line.name}
              </td>
              <td>{line.value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ContextMenu(props: { x: number; y: number; reading: Reading; filter: (reading: Reading, not: boolean) => void; close: (back: boolean) => void }) {
  const { reading } = props;
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => element.current?.querySelector("button")?.focus(), []);
  const key = (event: KeyboardEvent) => {
    const items = [...(element.current?.querySelectorAll("button") ?? [])];
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by) items[(items.indexOf(document.activeElement as HTMLButtonElement) + by + items.length) % items.length]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") props.close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const item = (text: string, run: () => void) => (
    <button
      type="button"
      role="menuitem"
      onClick={() => {
        run();
        props.close(true);
      }}
    >
      {text}
    </button>
  );
  return (
    <div class="tl-context" role="menu" aria-label="Timeline" ref={element} style={{ left: `${props.x}px`, top: `${props.y}px` }} onKeyDown={key}>
      {reading.process && item(`Only ${reading.process.name} (f)`, () => props.filter(reading, false))}
      {reading.process && item(`Without ${reading.process.name}`, () => props.filter(reading, true))}
      {drawn.value && item("Zoom to the selection", () => drawn.value && zoomTo(drawn.value))}
      {item("Show the whole trace", () => zoomTo(null))}
    </div>
  );
}
