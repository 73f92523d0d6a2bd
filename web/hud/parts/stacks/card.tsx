/** A box of a flame graph or a row of a tree in the inspector: what it costs, the stack that leads to it, what it calls. */

import { amount, visible } from "../../base/value.ts";
import type { Card } from "../../state/inspect.ts";
import { Swatch } from "../who.tsx";
import { alike } from "../grid/amounts.ts";
import { actions } from "./menu.tsx";
import { isCode, percent, type Nodes } from "./model.ts";
import { difference, points, type Whole } from "./tip.tsx";

/** What is mostly done: the rest stands in the box's menu. */
const SHOWN: [string, string][] = [["f", "Focus"], ["b", "Butterfly"], ["p", "Filter all"], ["d", "Drop"], ["m", "Merge"], ["c", "Collapse"], ["s", "Copy stack"]];
const CALLED = 6;

function Frames(props: { list: { label: string; module: string; text?: string }[] }) {
  return (
    <ul class="frames">
      {props.list.map((one, at) => (
        <li key={`${one.label} ${at}`}>
          <Swatch name={one.module || one.label} />
          <span class="cut" title={visible(one.label)} data-knows={one.label}>
            {visible(one.label)}
          </span>
          <b>{one.text}</b>
        </li>
      ))}
    </ul>
  );
}

export function nodeCard(nodes: Nodes, at: number, whole: Whole): Card {
  const [total, own] = [nodes.total[at] ?? 0, nodes.own[at] ?? 0];
  const module = nodes.text(at, "module");
  const stack: { label: string; module: string }[] = [];
  for (let up = at; up > 0 && stack.length < 40; up = nodes.parent[up] ?? 0) stack.push({ label: nodes.label[up] ?? "", module: nodes.text(up, "module") });
  const called = [...(nodes.children[at] ?? [])].sort((a, b) => (nodes.total[b] ?? 0) - (nodes.total[a] ?? 0)).slice(0, CALLED);
  const weights = alike(whole.unit, called.map((one) => nodes.total[one]));
  const pointed = nodes.pointed(at);
  const known = actions(pointed);
  return {
    id: `node ${nodes.path(at).join(" ")}`,
    kind: nodes.security(at) ? "Function in a security product" : isCode(nodes.text(at, "kind")) ? "Function" : "Group",
    swatch: module || (nodes.label[at] ?? ""),
    title: nodes.label[at] ?? "",
    knows: module || (nodes.label[at] ?? ""),
    facts: [
      ["Inclusive", amount(total, whole.unit)],
      ["Self", amount(own, whole.unit)],
      ["Of all", percent(total, whole.total)],
      ["Events", amount(nodes.num(at, "count"), "count")],
      ...(whole.before === null ? [] : [[`Change of ${whole.change ?? "share"}`, points(difference(nodes, at, whole))] as [string, string]]),
    ],
    parts: [
      ...(called.length > 0 ? [{ title: nodes.inverted ? "Called by" : "Calls", aside: "inclusive", body: <Frames list={called.map((one) => ({ label: nodes.label[one] ?? "", module: nodes.text(one, "module"), text: weights.text(nodes.total[one] ?? 0) }))} /> }] : []),
      { title: "Stack", aside: nodes.inverted ? "outermost first" : "innermost first", body: <Frames list={stack} /> },
    ],
    actions: SHOWN.flatMap(([key, text], i) => {
      const one = known.find((each) => each.key === key);
      return one ? [{ text, run: one.run, primary: i === 0 }] : [];
    }),
  };
}
