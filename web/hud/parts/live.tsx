/** What screen readers say, and what is shown for a moment at the edge of the window. */

import { signal } from "@preact/signals";
import { visible } from "../base/value.ts";

const message = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says something that happened. */
export function say(text: string): void {
  message.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (message.value = ""), 5000);
}

export function Live() {
  return (
    <div class="live" role="status" aria-live="polite">
      {visible(message.value)}
    </div>
  );
}
