/** Where the times of a panel are taken, beside what the verdict says of the same things: two layers give two figures, and neither is wrong. */

import type { Panel } from "../app/panel.ts";
import { visible } from "../base/value.ts";
import { WHERE } from "../state/select.ts";
import { report } from "../state/view.ts";

/** Headlines that are named. */
const MOST = 3;

export function Measures(props: { panel: Panel }) {
  const { measures, id } = props.panel;
  if (!measures) return null;
  const found = (report.value?.findings ?? []).filter((one) => one.answer === "found" && one.severity !== "info" && (WHERE[one.topic] ?? []).includes(id));
  const headlines = found.slice(0, MOST).flatMap((one) => one.hits.slice(0, 1).map((hit) => hit.headline));
  const cut = measures.indexOf(". ") + 1;
  const [first, rest] = cut > 0 ? [measures.slice(0, cut), measures.slice(cut + 1)] : [measures, ""];
  return (
    <details class="about measures" data-part="measures">
      <summary>
        {first}
        {headlines.length > 0 && <> The verdict says: {visible(headlines[0] ?? "")}.</>}
      </summary>
      <p>
        {rest}
        {headlines.length > 1 && <> Also in the verdict: {headlines.slice(1).map(visible).join("; ")}.</>}
      </p>
    </details>
  );
}
