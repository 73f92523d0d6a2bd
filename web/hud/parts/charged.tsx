/** Who spends a driver's DPCs or ISRs: drivers on their stacks, as parts of one bar. */

import { number } from "../../src/lib/format.ts";
import { fillOf, isGuard, markOf } from "../base/colors.ts";
import { visible } from "../base/value.ts";
import { painted } from "../state/palette.ts";
import type { OnStack } from "../wire/types.ts";

export function Charged(props: { host: string; list: OnStack[] }) {
  void painted.value;
  if (props.list.length === 0) return null;
  const known = props.list.reduce((sum, one) => sum + one.percent, 0);
  const own = Math.max(0, 100 - known);
  return (
    <div class="charged" role="img" aria-label={`${props.host}: ${props.list.map((one) => `${one.driver} ${number(one.percent)} %`).join(", ")}`}>
      {props.list.map((one) => (
        <span key={one.driver} class={one.security || isGuard(one.driver) ? "hatched" : ""} style={{ width: `${one.percent}%`, backgroundColor: `var(${fillOf(one.driver)})`, borderColor: `var(${markOf(one.driver)})` }}>
          <b>{visible(one.driver)}</b> {number(one.percent)} %
        </span>
      ))}
      {own > 0.5 && <span style={{ width: `${own}%`, backgroundColor: "var(--fos)", borderColor: "var(--os)" }}>Windows {number(own)} %</span>}
    </div>
  );
}
