/** A part of the page that what a link keeps of it can break: it says so, and goes on without that. */

import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";
import { visible } from "../base/value.ts";
import { unset } from "../state/view.ts";

export function Guarded(props: { keeps: string; title: string; children: ComponentChildren }) {
  const [error, again] = useErrorBoundary() as [unknown, () => void];
  if (error === undefined) return <>{props.children}</>;
  const go = () => {
    unset(props.keeps);
    again();
  };
  return (
    <div class="box nothing" role="alert">
      <p>
        {props.title} cannot be drawn with the settings that the link or the view has for it ({visible(error instanceof Error ? error.message : String(error))}).
      </p>
      <button type="button" class="small" onClick={go}>
        Without these settings
      </button>
    </div>
  );
}
