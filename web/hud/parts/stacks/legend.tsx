/** What colours mean. */

import { visible } from "../../base/value.ts";
import { paint } from "./colors.ts";
import { settings } from "./model.ts";

export function Legend(props: { keys: string[]; weight: (at: number) => number; security?: boolean; note?: string }) {
  const sums = new Map<string, number>();
  props.keys.forEach((key, at) => {
    if (key) sums.set(key, (sums.get(key) ?? 0) + props.weight(at));
  });
  const list = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 10);
  const colors = paint();
  return (
    <div class="stack-legend" role="group" aria-label={`Colors by ${settings().color}`}>
      {list.map(([key]) => (
        <span key={key}>
          <i class="swatch" aria-hidden="true" style={{ background: colors.fill(key) }} />
          <span class="cut" title={visible(key)}>
            {visible(key)}
          </span>
        </span>
      ))}
      {sums.size > list.length && <span class="muted">and {sums.size - list.length} more</span>}
      {props.security && (
        <span>
          <i class="swatch security" aria-hidden="true" />[S] security product
        </span>
      )}
      {props.note && <span class="muted note">{props.note}</span>}
    </div>
  );
}

/** What the colours of a comparison mean. */
export function Differences(props: { more: string; less: string }) {
  return (
    <p class="stack-legend">
      <span>
        <i class="swatch more" aria-hidden="true" />▲ {props.more}
      </span>
      <span>
        <i class="swatch less" aria-hidden="true" />▼ {props.less}
      </span>
    </p>
  );
}
