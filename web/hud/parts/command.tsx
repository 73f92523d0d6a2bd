/** A command that can be copied. */

import { copy } from "./box.tsx";
import { Icon } from "./icons.tsx";

export function Command(props: { text: string }) {
  if (!props.text) return null;
  return (
    <div class="command">
      <code>{props.text}</code>
      <button type="button" class="icon-button" aria-label={`Copy ${props.text}`} onClick={() => void copy(props.text, "command")}>
        <Icon name="copy" size={14} />
      </button>
    </div>
  );
}
