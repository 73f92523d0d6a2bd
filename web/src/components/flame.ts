/** CPU time along stacks: a graph to walk through, and a list of functions. */

import type { Flame } from "../charts.ts";
import { h } from "../lib/dom.ts";
import { count, duration, percent, share } from "../lib/format.ts";
import { frame, segmented } from "./frame.ts";
import { dataTable } from "./table.ts";

const ROW = 20;
/** Narrower nodes are not drawn: a share of the width. */
const LEAST = 0.0008;

interface Node {
  at: number;
  name: string;
  colour: string;
  category: string | null;
  total: number;
  own: number;
  parent: Node | null;
  children: Node[];
  depth: number;
}

const DRAWN_AS: Record<string, string> = {
  root: "root",
  process: "process",
  kernel: "kernel",
  user: "user",
  managed: "managed",
  interrupt: "interrupt",
};

/** Nodes with their children, largest first; the first is the root. Parents stand before children in the data. */
function tree(data: Flame): Node[] {
  const nodes: Node[] = [];
  data.name.forEach((number, at) => {
    const named = data.names[number];
    const parent = at === 0 ? null : (nodes[data.parent[at] ?? 0] ?? null);
    const node: Node = {
      at,
      name: named?.name ?? "",
      colour: named?.security ? "watched" : (DRAWN_AS[named?.kind ?? ""] ?? "unknown"),
      category: named?.category ?? null,
      total: data.total_ns[at] ?? 0,
      own: data.self_ns[at] ?? 0,
      parent,
      children: [],
      depth: parent ? parent.depth + 1 : 0,
    };
    parent?.children.push(node);
    nodes.push(node);
  });
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return nodes;
}

/** Inclusive and exclusive time by name; a name counts once on a stack however often it stands there. */
function byName(nodes: Node[]): { name: string; category: string | null; total: number; own: number }[] {
  const sums = new Map<string, { name: string; category: string | null; total: number; own: number }>();
  for (const node of nodes) {
    if (node.depth < 2) continue;
    const sum = sums.get(node.name) ?? { name: node.name, category: node.category, total: 0, own: 0 };
    sum.own += node.own;
    let above = node.parent;
    while (above && above.name !== node.name) above = above.parent;
    if (!above) sum.total += node.total;
    sums.set(node.name, sum);
  }
  return [...sums.values()].sort((a, b) => b.own - a.own || b.total - a.total);
}

/** The chart. */
export function flame(data: Flame): HTMLElement {
  const nodes = tree(data);
  const root = nodes[0] as Node;
  let zoomed = root;
  let focused = root;
  let pattern = "";
  const elements = new Map<Node, HTMLElement>();
  const canvas = h("div", { class: "flame", role: "tree", "aria-label": "CPU time along stacks" });
  const path = h("nav", { class: "crumbs", "aria-label": "Zoomed into" });
  const detail = h("p", { class: "detail" });
  const found = h("span", { class: "found", role: "status" });
  const search = h("input", {
    type: "search",
    placeholder: "Search functions",
    "aria-label": "Search functions in the flame graph",
    oninput: () => {
      pattern = search.value.toLowerCase();
      mark();
    },
  });

  const describe = (node: Node) =>
    `${node.name}: ${percent(share(node.total, root.total))}, ${duration(node.total)} with what it called, ${duration(node.own)} itself` +
    (node.category ? `, ${node.category}` : "");

  function mark(): void {
    let covered = 0;
    let matches = 0;
    for (const [node, element] of elements) {
      const hit = pattern !== "" && node.name.toLowerCase().includes(pattern);
      element.classList.toggle("match", hit);
      element.classList.toggle("dim", pattern !== "" && !hit);
    }
    if (pattern !== "") {
      for (const node of nodes) {
        if (!node.name.toLowerCase().includes(pattern)) continue;
        matches += 1;
        let above = node.parent;
        while (above && !above.name.toLowerCase().includes(pattern)) above = above.parent;
        if (!above) covered += node.total;
      }
    }
    found.textContent = pattern === "" ? "" : `${count(matches)} nodes, ${percent(share(covered, root.total))} of CPU time`;
  }

  function zoom(node: Node): void {
    zoomed = node;
    focused = node;
    draw();
  }

  function select(node: Node, move: boolean): void {
    elements.get(focused)?.setAttribute("tabindex", "-1");
    focused = node;
    const element = elements.get(node);
    element?.setAttribute("tabindex", "0");
    detail.textContent = describe(node);
    if (move) element?.focus();
  }

  function key(event: KeyboardEvent): void {
    const drawn = (node: Node | null | undefined) => (node && elements.has(node) ? node : null);
    const siblings = focused.parent?.children.filter((node) => elements.has(node)) ?? [focused];
    const place = siblings.indexOf(focused);
    const goals: Record<string, Node | null | undefined> = {
      ArrowUp: focused.parent,
      ArrowDown: focused.children.find((node) => elements.has(node)),
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
      Home: zoomed,
    };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      zoom(focused);
      elements.get(zoomed)?.focus();
    } else if (event.key === "Escape" || event.key === "Backspace") {
      event.preventDefault();
      const inner = zoomed;
      zoom(event.key === "Escape" ? root : (zoomed.parent ?? root));
      select(drawn(inner) ?? zoomed, true);
    } else if (event.key in goals) {
      event.preventDefault();
      const goal = drawn(goals[event.key]);
      if (goal) select(goal, true);
    }
  }

  function box(node: Node, left: number, width: number): HTMLElement {
    return h(
      "div",
      {
        class: `node ${node.colour}`,
        role: "treeitem",
        tabindex: "-1",
        "aria-level": String(node.depth + 1),
        "aria-label": describe(node),
        "aria-selected": String(node === zoomed),
        title: describe(node),
        style: { left: `${left * 100}%`, width: `${width * 100}%`, top: `${node.depth * ROW}px` },
        onclick: () => {
          zoom(node);
          elements.get(node)?.focus();
        },
        onfocus: () => select(node, false),
        onpointerenter: () => {
          detail.textContent = describe(node);
        },
      },
      width > 0.015 ? node.name : "",
    );
  }

  function draw(): void {
    elements.clear();
    const boxes: HTMLElement[] = [];
    let depth = 0;
    const put = (node: Node, left: number, width: number) => {
      const element = box(node, left, width);
      elements.set(node, element);
      boxes.push(element);
      depth = Math.max(depth, node.depth);
    };
    const above: Node[] = [];
    for (let node = zoomed.parent; node; node = node.parent) above.unshift(node);
    for (const node of above) put(node, 0, 1);
    const open: [Node, number, number][] = [[zoomed, 0, 1]];
    for (let next = open.pop(); next; next = open.pop()) {
      const [node, left, width] = next;
      put(node, left, width);
      let at = left;
      for (const child of node.children) {
        const part = width * share(child.total, node.total);
        if (part >= LEAST) open.push([child, at, part]);
        at += part;
      }
    }
    for (const node of above) elements.get(node)?.classList.add("above");
    canvas.style.height = `${(depth + 1) * ROW}px`;
    canvas.replaceChildren(...boxes);
    path.replaceChildren(
      ...[...above, zoomed].map((node) =>
        node === zoomed
          ? h("span", { "aria-current": "true" }, node.name)
          : h("button", { type: "button", class: "link", onclick: () => zoom(node) }, node.name),
      ),
    );
    path.hidden = zoomed === root;
    select(focused, false);
    mark();
  }

  canvas.addEventListener("keydown", key);
  draw();
  const graphic = h("div", { class: "graphic" }, path, h("div", { class: "flame-scroll" }, canvas), detail);
  const list = byName(nodes);
  const kinds = [
    ["process", "process"],
    ["user", "program"],
    ["managed", ".NET"],
    ["kernel", "kernel"],
    ["watched", "security product"],
    ["interrupt", "DPC and ISR"],
    ["unknown", "unknown"],
  ].filter(([colour]) => nodes.some((node) => node.colour === colour));
  let order: "own" | "total" = "own";
  const table = h("div");
  const fill = () =>
    table.replaceChildren(
      dataTable(
        [...list].sort((a, b) => b[order] - a[order]).slice(0, 200),
        [
          { title: "function", cell: (row) => row.name, key: (row) => row.name, head: true, name: true },
          { title: "category", cell: (row) => row.category ?? "–" },
          { title: "exclusive", cell: (row) => duration(row.own), key: (row) => row.own },
          { title: "share", cell: (row) => percent(share(row.own, root.total)) },
          { title: "inclusive", cell: (row) => duration(row.total), key: (row) => row.total },
          { title: "share", cell: (row) => percent(share(row.total, root.total)) },
        ],
        { caption: "Functions by CPU time" },
      ),
    );
  return frame({
    title: "Where CPU time was spent",
    summary: [
      `${duration(root.total)} of CPU time along stacks, callers above what they called; width is time, order is size. `,
      "Choose a node to zoom; arrow keys walk, Enter zooms, Escape goes back. ",
      data.omitted > 0 ? `${count(data.omitted)} small nodes are left out; their time stays in the nodes above them.` : "",
    ],
    graphic,
    controls: [found, search],
    legend: h("ul", { class: "legend" }, kinds.map(([colour, name]) => h("li", {}, h("i", { class: `swatch node ${colour}` }), name))),
    table: () => {
      fill();
      const choice = segmented<"own" | "total">(
        "Order",
        [{ label: "Exclusive", value: "own" }, { label: "Inclusive", value: "total" }],
        order,
        (chosen) => {
          order = chosen;
          fill();
        },
      );
      return h("div", {}, choice, table);
    },
  });
}
