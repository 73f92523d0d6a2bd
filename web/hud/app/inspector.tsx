/** What is known of what was selected: facts, where it comes from, what to do, what would disprove it. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { visible } from "../base/value.ts";
import { Actions } from "../parts/actions.tsx";
import { Swatch } from "../parts/who.tsx";
import { Maker } from "../parts/maker.tsx";
import { Icon, Severity } from "../parts/icons.tsx";
import { FindingInspector } from "../parts/finding_inspector.tsx";
import { card, type Card } from "../state/inspect.ts";
import { findFound, lookedAt } from "../state/finding.ts";
import { set, setting, view } from "../state/view.ts";

interface Settings {
  inspector: boolean | null;
  width: number;
  sheet: "half" | "full" | "peek";
}

const FALLBACK: Settings = { inspector: null, width: 320, sheet: "half" };
const LEAST = 280;
const MOST = 480;

/** Whether it has room beside the panel. */
const roomy = signal(innerWidth > 1100);
addEventListener("resize", () => (roomy.value = innerWidth > 1100));

/** Whether it is open: where there is room, unless somebody closed it. */
export const isOpen = () => setting<Settings>("shell", FALLBACK).inspector ?? (roomy.value && view.value.panel !== "sql" && (card.value !== null || findFound(null) !== null));
export const toggleInspector = () => set<Settings>("shell", { inspector: !isOpen() });
export const openInspector = () => {
  if (!isOpen()) set<Settings>("shell", { inspector: true });
};

function CardView(props: { card: Card; close: () => void }) {
  const { card: one } = props;
  return (
    <>
      <div class="head">
        <div class="kind">
          {one.severity && <Severity name={one.severity} />}
          {one.swatch && <Swatch name={one.swatch} />}
          {one.kind}
        </div>
        <h2>{visible(one.title)}</h2>
        {one.knows && <Maker name={one.knows} />}
      </div>
      {one.facts.length > 0 && (
        <dl class="part fact-grid">
          {one.facts.map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class={text.length > 14 ? "long" : ""}>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {(one.parts ?? []).map((part) => (
        <section class="part" key={part.title}>
          <h3>
            {part.title}
            {part.aside && <span class="aside">{part.aside}</span>}
          </h3>
          {part.body}
        </section>
      ))}
      {one.actions.length > 0 && <Actions list={one.actions} />}
    </>
  );
}

export function Inspector() {
  const settings = setting<Settings>("shell", FALLBACK);
  useEffect(() => bind("Inspector", [{ key: "i", about: "inspector: open or close", run: toggleInspector }]), []);
  // What was selected belongs to its panel and trace.
  const place = `${view.value.panel} ${view.value.trace}`;
  useEffect(() => {
    card.value = null;
  }, [place]);
  if (!isOpen()) return null;
  const width = Math.max(LEAST, Math.min(MOST, settings.width));
  const finding = findFound(lookedAt());
  const one = card.value;
  const resize = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const [x, from] = [event.clientX, width];
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => set<Settings>("shell", { width: Math.round(Math.max(LEAST, Math.min(MOST, from + x - moved.clientX))) });
    handle.onpointerup = () => (handle.onpointermove = null);
  };
  const sheets = { peek: "half", half: "full", full: "peek" } as const;
  return (
    <aside class={`inspector ${settings.sheet}`} aria-label="Inspector" style={{ width: `${width}px` }}>
      <div
        class="edge"
        role="separator"
        tabIndex={0}
        aria-orientation="vertical"
        aria-label="Width of the inspector"
        aria-valuenow={width}
        aria-valuemin={LEAST}
        aria-valuemax={MOST}
        onPointerDown={resize}
        onKeyDown={(event) => {
          const by = event.key === "ArrowLeft" ? 16 : event.key === "ArrowRight" ? -16 : 0;
          if (!by) return;
          event.preventDefault();
          set<Settings>("shell", { width: Math.max(LEAST, Math.min(MOST, width + by)) });
        }}
      />
      <button type="button" class="grip" aria-label="Height of the inspector" onClick={() => set<Settings>("shell", { sheet: sheets[settings.sheet] })} />
      <div class="scroll" tabIndex={0} role="group" aria-label="About what is selected">
        {one ? (
          <CardView card={one} close={toggleInspector} />
        ) : finding ? (
          <FindingInspector key={finding.id} of={finding} />
        ) : (
          <div class="part">
            <p>Select a row, a bar or a slice to see what is known about it.</p>
          </div>
        )}
      </div>
      <button type="button" class="icon-button shut" aria-label="Close the inspector" title="Close the inspector (i)" onClick={toggleInspector}>
        <Icon name="close" size={14} />
      </button>
    </aside>
  );
}
