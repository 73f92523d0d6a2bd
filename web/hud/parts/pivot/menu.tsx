/** A menu at a cell: arrows move, Enter takes, Escape closes and gives the focus back. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { giveBack, useOverPage } from "../over_page.ts";

export interface Item {
  text: string;
  key?: string;
  run: () => void;
}

export interface MenuAt {
  x: number;
  y: number;
  items: Item[];
}

export function Menu(props: { at: MenuAt; label: string; onClose: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element) {
      const { width, height } = element.getBoundingClientRect();
      element.style.left = `${Math.max(4, Math.min(props.at.x, innerWidth - width - 4))}px`;
      element.style.top = `${Math.max(4, Math.min(props.at.y, innerHeight - height - 4))}px`;
    }
  }, []);
  const before = useOverPage(box, "[role=menuitem]", props.onClose);
  const close = () => {
    props.onClose();
    giveBack(before);
  };
  const move = (by: number) => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[(at + by + all.length) % all.length]?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Escape: close, Tab: close };
    const run = keys[event.key];
    if (run) {
      run();
      event.preventDefault();
    }
    event.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={props.label} ref={box} onKeyDown={onKey}>
      {props.at.items.map((item) => (
        <button type="button" role="menuitem" tabIndex={-1} key={item.text} onClick={() => { close(); item.run(); }}>
          <span>{item.text}</span>
          {item.key && <kbd>{item.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
