/** A window over the page: the browser's own dialog keeps the focus inside and gives it back. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    element.current?.showModal();
    // Who opens a dialog to type something wants to type.
    element.current?.querySelector<HTMLElement>("input")?.focus();
  }, []);
  return (
    <dialog ref={element} aria-label={props.title} onClose={props.onClose} onClick={(event) => event.target === element.current && element.current?.close()}>
      <div class="dialog">
        <div class="dialog-head">
          <h2>{props.title}</h2>
          <button type="button" class="small" onClick={() => element.current?.close()}>
            Close
          </button>
        </div>
        {props.children}
      </div>
    </dialog>
  );
}
