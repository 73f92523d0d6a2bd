/** What can be done with what the inspector tells about. */

import type { Action } from "../state/inspect.ts";

export function Actions(props: { list: Action[] }) {
  return (
    <div class="part actions">
      {props.list.map((one) => (
        <button type="button" key={one.text} class={one.primary ? "primary" : ""} aria-pressed={one.on} onClick={one.run}>
          {one.text}
        </button>
      ))}
    </div>
  );
}
