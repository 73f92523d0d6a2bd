/** A name with its colour: process, driver, module, file. */

import { isGuard, markOf } from "../base/colors.ts";
import { visible } from "../base/value.ts";
import { painted } from "../state/palette.ts";

export function Swatch(props: { name: string }) {
  void painted.value;
  return <i class={isGuard(props.name) ? "swatch hatched" : "swatch"} style={{ backgroundColor: `var(${markOf(props.name)})` }} aria-hidden="true" />;
}

export function Who(props: { name: string }) {
  return (
    <span class="who">
      <Swatch name={props.name} />
      <span class="cut" data-knows={props.name}>
        {visible(props.name)}
      </span>
    </span>
  );
}
