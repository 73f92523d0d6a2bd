/** A command that can be copied. */

import { visible } from "../base/value.ts";
import { copy } from "./box.tsx";
import { Icon } from "./icons.tsx";

export function Command(props: { text: string }) {
  if (!props.text) return null;
  // What is copied is what is seen.
  const text = visible(props.text);
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="icon-button" aria-label={`Copy ${text}`} onClick={() => void copy(text, "command")}>
        <Icon name="copy" size={14} />
      </button>
    </div>
  );
}
