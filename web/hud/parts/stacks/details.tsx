/** The node that is selected, in a line, with what is mostly done with it. */

import { amount, visible } from "../../base/value.ts";
import { actions } from "./menu.tsx";
import { isCode, percent, type Pointed } from "./model.ts";
import type { Whole } from "./tip.tsx";

const SHOWN = new Set(["Enter", "f", "b", "p", "P", "s"]);

export function Details(props: { at: Pointed; whole: Whole }) {
  const { at, whole } = props;
  return (
    <div class="stack-details" data-part="details">
      <span class="name" {...(isCode(at.kind) ? { "data-knows": at.label } : {})}>
        {at.security && <b class="security" title="Security product">[S] </b>}
        {visible(at.label)}
      </span>
      <span>
        {amount(at.total, whole.unit)} ({percent(at.total, whole.total)}), own {amount(at.own, whole.unit)} ({percent(at.own, whole.total)})
      </span>
      {at.category && <span class="muted">{visible(at.category)}</span>}
      {at.tag && <span class="muted">{visible(at.tag)}</span>}
      {actions(at)
        .filter((one) => SHOWN.has(one.key))
        .map((one) => (
          <button type="button" class="small" key={one.key} onClick={one.run} title={`Key: ${one.key}`}>
            {visible(one.title)}
          </button>
        ))}
    </div>
  );
}
