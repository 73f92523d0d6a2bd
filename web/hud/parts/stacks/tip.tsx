/** What is known of a box. */

import { amount, visible } from "../../base/value.ts";
import { percent, type Nodes } from "./model.ts";

export interface Whole {
  unit: string;
  /** Of the part. */
  total: number;
  /** Of what it is compared with. */
  before: number | null;
  /** What the difference is one of; shares if nothing is said. */
  change?: string;
}

/** Difference of shares, in points of a hundred. */
export function difference(nodes: Nodes, at: number, whole: Whole): number {
  const now = whole.total > 0 ? (nodes.total[at] ?? 0) / whole.total : 0;
  const was = whole.before !== null && whole.before > 0 ? (nodes.before[at] ?? 0) / whole.before : 0;
  return now - was;
}

export const points = (change: number) => `${change > 0 ? "▲ +" : change < 0 ? "▼ −" : "= "}${Math.abs(100 * change).toFixed(2)}\u00a0points`;

export function NodeTip(props: { nodes: Nodes; at: number; whole: Whole }) {
  const { nodes, at, whole } = props;
  const total = nodes.total[at] ?? 0;
  const own = nodes.own[at] ?? 0;
  const cut = nodes.num(at, "cut");
  const line = (name: string, text: string) =>
    text && (
      <>
        <dt>{name}</dt>
        <dd>{visible(text)}</dd>
      </>
    );
  return (
    <>
      <p class="name">{visible(nodes.label[at] ?? "")}</p>
      {nodes.security(at) && <p class="security">[S] security product</p>}
      <dl>
        {line("total", `${amount(total, whole.unit)}, ${percent(total, whole.total)}`)}
        {line("own", `${amount(own, whole.unit)}, ${percent(own, whole.total)}`)}
        {line("events", amount(nodes.num(at, "count"), "count"))}
        {line("module", nodes.text(at, "module"))}
        {line("category", nodes.text(at, "category"))}
        {line("tag", nodes.text(at, "tag"))}
        {line("cut stacks", cut > 0 ? `${amount(cut, whole.unit)} begin here in their middle` : "")}
        {line("too small", nodes.num(at, "left_out") > 0 ? `${nodes.num(at, "left_out")} children, ${amount(nodes.num(at, "left_weight"), whole.unit)}` : "")}
        {whole.before !== null && line("before", `${amount(nodes.before[at] ?? 0, whole.unit)}, ${percent(nodes.before[at] ?? 0, whole.before)}`)}
        {whole.before !== null && line(whole.change ?? "share", points(difference(nodes, at, whole)))}
      </dl>
    </>
  );
}

export function nodeText(nodes: Nodes, at: number, whole: Whole): string {
  const total = nodes.total[at] ?? 0;
  const security = nodes.security(at) ? ", security product" : "";
  const diff = whole.before !== null ? `, ${points(difference(nodes, at, whole))}` : "";
  return `${visible(nodes.label[at] ?? "")}${security}: ${percent(total, whole.total)}, ${amount(total, whole.unit)}, own ${amount(nodes.own[at] ?? 0, whole.unit)}, level ${(nodes.depth[at] ?? 0) + 1}${diff}`;
}
