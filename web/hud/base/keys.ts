/** Keys: declared where they work, listed by the help, silent while somebody types. */

export interface Key {
  /** `event.key`, with `Shift+`, `Ctrl+` or `Alt+` before it. */
  key: string;
  about: string;
  run: () => void;
}

const bound = new Map<string, Key[]>();

const name = (event: KeyboardEvent) =>
  {
  const held = event.ctrlKey || event.metaKey || event.altKey;
  const shift = event.shiftKey && (event.key.length > 1 || held);
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${shift ? "Shift+" : ""}${shift && event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
};

/** True where keys are text. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Binds keys under a heading until the returned function is called. */
export function bind(heading: string, keys: Key[]): () => void {
  bound.set(heading, keys);
  return () => {
    if (bound.get(heading) === keys) bound.delete(heading);
  };
}

/** All keys, by heading. */
export const all = (): [string, Key[]][] => [...bound];

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || typing(event.target) || document.querySelector("dialog[open]")) return;
    const pressed = name(event);
    // The last bound wins: panels come after the frame.
    for (const keys of [...bound.values()].reverse()) {
      const found = keys.find((one) => one.key === pressed);
      if (found) {
        event.preventDefault();
        found.run();
        return;
      }
    }
  });
}
