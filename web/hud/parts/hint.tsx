/**
 * Hints as one points at a term, column, function, driver or program, or moves the focus to it: what it means, who makes it, what to
 * do. Elements say so with `data-hint` (a text) and `data-knows` (a name that the knowledge base is asked for).
 */

import { useEffect, useState } from "preact/hooks";
import { ask } from "../wire/api.ts";
import { visible } from "../base/value.ts";

interface Knowledge {
  name: string;
  module: { name: string; what: string; vendor: string; product: string; category: string; security: boolean; altitudes: string[]; confidence: string; sources: string } | null;
  tags: { pattern: string; category: string; meaning: string }[];
  findings: { id: string; title: string; by: string }[];
}

interface Shown {
  x: number;
  y: number;
  below: number;
  text: string;
  name: string;
  known: Knowledge | null;
}

const kept = new Map<string, Promise<Knowledge>>();

/** What is known of a name; asked once. */
export function know(name: string): Promise<Knowledge> {
  let answer = kept.get(name);
  if (!answer) {
    answer = ask("knowledge", { name }) as Promise<Knowledge>;
    kept.set(name, answer);
  }
  return answer;
}

/** The process id behind a name says nothing of the program. */
const plain = (name: string) => name.replace(/ \(\d+\)$/, "");

export function Hints() {
  const [shown, set] = useState<Shown | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let at: Element | null = null;
    const hide = () => {
      clearTimeout(timer);
      at = null;
      set(null);
    };
    const look = (target: EventTarget | null, wait: number) => {
      const found = target instanceof Element ? target.closest("[data-hint],[data-knows]") : null;
      if (found === at) return;
      hide();
      at = found;
      if (!found) return;
      timer = setTimeout(() => {
        const box = found.getBoundingClientRect();
        const text = found.getAttribute("data-hint") ?? "";
        const name = plain(found.getAttribute("data-knows") ?? "");
        const place: Shown = { x: box.left, y: box.bottom, below: innerHeight - box.bottom, text, name, known: null };
        if (text) set(place);
        if (name && name.length < 2000) {
          know(name).then(
            (known) => {
              const says = known.module !== null || known.tags.length > 0 || known.findings.length > 0;
              if (at === found && (says || text)) set({ ...place, known: says ? known : null });
            },
            () => undefined,
          );
        }
      }, wait);
    };
    const over = (event: Event) => look(event.target, 350);
    const focus = (event: Event) => {
      // A click moves the focus too; only keys ask for hints by it.
      if ((event.target as Element).matches?.(":focus-visible")) look((event.target as Element).querySelector("[data-hint],[data-knows]") ?? event.target, 700);
    };
    const key = (event: KeyboardEvent) => event.key === "Escape" && hide();
    document.addEventListener("pointerover", over);
    document.addEventListener("focusin", focus);
    document.addEventListener("pointerdown", hide);
    document.addEventListener("scroll", hide, true);
    document.addEventListener("keydown", key);
    return () => {
      document.removeEventListener("pointerover", over);
      document.removeEventListener("focusin", focus);
      document.removeEventListener("pointerdown", hide);
      document.removeEventListener("scroll", hide, true);
      document.removeEventListener("keydown", key);
    };
  }, []);
  if (!shown) return null;
  const { known } = shown;
  const above = shown.below < 180;
  const style = { left: `${Math.max(4, Math.min(shown.x, innerWidth - 380))}px`, ...(above ? { bottom: `${shown.below + 22}px` } : { top: `${shown.y + 4}px` }) };
  return (
    <div class="hint" role="tooltip" style={style}>
      {shown.text && <p>{visible(shown.text)}</p>}
      {known?.module && (
        <>
          <p>
            <strong class="name">{known.module.name}</strong>: {known.module.what}
            {known.module.security && <strong class="watched"> security product</strong>}
          </p>
          <p>{[known.module.vendor, known.module.product, known.module.category].filter(Boolean).join(" · ")}</p>
          {known.module.altitudes.length > 0 && <p class="muted">altitude {known.module.altitudes.slice(0, 4).join(", ")}</p>}
          <p class="muted">confidence {known.module.confidence}</p>
        </>
      )}
      {known?.tags.slice(0, 3).map((tag) => (
        <p key={tag.pattern}>
          <span class="name">{tag.pattern}</span>: {tag.meaning} ({tag.category})
        </p>
      ))}
      {known && known.findings.length > 0 && <p class="muted">Findings that speak of it: {known.findings.slice(0, 3).map((one) => one.title).join("; ")}</p>}
    </div>
  );
}
