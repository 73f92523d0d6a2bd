/** What opens over the page: lists and menus. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * The focus goes to `first` before the browser takes the next key: a key that came sooner would go to what lies below, and Escape
 * would close nothing. A press elsewhere closes, but for one on what opens and closes it (`opener`). Gives who had the focus before.
 */
export function useOverPage(element: RefObject<HTMLElement | null>, first: string, close: () => void, opener = ""): RefObject<Element | null> {
  const before = useRef<Element | null>(null);
  useLayoutEffect(() => {
    before.current = document.activeElement;
    element.current?.querySelector<HTMLElement>(first)?.focus();
    const away = (event: PointerEvent) => {
      const target = event.target as Element;
      if (!element.current?.contains(target) && !(opener && target.closest?.(opener))) close();
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, []);
  return before;
}

/** Gives the focus back. */
export const giveBack = (before: RefObject<Element | null>) => {
  if (before.current instanceof HTMLElement && before.current.isConnected) before.current.focus();
};
