/** The flame graph of an answer: width is weight. */

import { useMemo, useRef, useState } from "preact/hooks";
import { isGuard } from "../../base/colors.ts";
import { amount } from "../../base/value.ts";
import { copy } from "../box.tsx";
import { RowsGrid } from "../rows_grid.tsx";
import { BoxCanvas, type Boxes } from "./boxes.tsx";
import { colorKey, differenceColor } from "./colors.ts";
import { inspect } from "../../state/inspect.ts";
import { nodeCard } from "./card.tsx";
import { Details } from "./details.tsx";
import { treeText } from "./export.ts";
import { Menu } from "./menu.tsx";
import { change, isCode, pointed, searched, settings, type Nodes } from "./model.ts";
import { difference, NodeTip, nodeText, type Whole } from "./tip.tsx";

const begins = (path: string[], with_: string[]) => with_.every((label, at) => path[at] === label);

/** Where the node that was the whole before stands now. */
function placeOf(nodes: Nodes, path: string[]): [number, number] | null {
  if (!begins(path, nodes.above)) return null;
  let at = 0;
  for (const label of path.slice(nodes.above.length)) {
    const next = (nodes.children[at] ?? []).find((child) => nodes.label[child] === label);
    if (next === undefined) break;
    at = next;
  }
  return at > 0 ? [nodes.x0[at] ?? 0, nodes.x1[at] ?? 1] : null;
}

export function Flame(props: { nodes: Nodes; whole: Whole; label: string }) {
  const { nodes, whole } = props;
  const { search, color, up, table } = settings();
  const [selected, setSelected] = useState(-1);
  const [menu, setMenu] = useState<{ at: number; x: number; y: number } | null>(null);
  const last = useRef<{ nodes: Nodes | null; path: string[]; id: number; from: [number, number] | null }>({ nodes: null, path: [], id: 0, from: null });
  if (last.current.nodes !== nodes) {
    const back = last.current.nodes !== null && last.current.path.length > nodes.above.length;
    last.current = { nodes, path: nodes.above, id: last.current.id + 1, from: back ? placeOf(nodes, last.current.path) : null };
    if (selected !== -1) setSelected(-1);
  }
  const found = useMemo(() => searched(nodes, search), [nodes, search]);
  const boxes = useMemo((): Boxes => {
    const keys = Array.from({ length: nodes.count }, (_, at) =>
      colorKey({ label: nodes.label[at] ?? "", kind: nodes.text(at, "kind"), module: nodes.text(at, "module"), category: nodes.text(at, "category"), tag: nodes.text(at, "tag") }, color),
    );
    return {
      count: nodes.count,
      levels: nodes.levels,
      x0: nodes.x0,
      x1: nodes.x1,
      depth: nodes.depth,
      label: (at) => `${whole.before !== null ? (difference(nodes, at, whole) > 0.001 ? "▲ " : difference(nodes, at, whole) < -0.001 ? "▼ " : "") : ""}${nodes.label[at] ?? ""}`,
      color: (at, paint) => (whole.before !== null ? differenceColor(difference(nodes, at, whole), paint.dark) : paint.fill(keys[at] ?? "")),
      security: (at) => nodes.security(at),
      striped: (at) => isGuard(nodes.text(at, "module")),
      hit: found ? (at) => found.hit[at] === 1 : null,
    };
  }, [nodes, color, found, whole]);
  const select = (at: number) => {
    setSelected(at);
    pointed.value = nodes.pointed(at);
    if (at > 0) inspect(nodeCard(nodes, at, whole));
  };
  if (table) {
    return <RowsGrid label={`${props.label} as a table`} rows={nodes.rows} hide={["side", "id", "parent", ...(whole.before === null ? ["before"] : [])]} />;
  }
  return (
    <>
      <BoxCanvas
        label={props.label}
        boxes={boxes}
        id={String(last.current.id)}
        from={last.current.from}
        up={up}
        say={(at) => nodeText(nodes, at, whole)}
        tip={(at) => <NodeTip nodes={nodes} at={at} whole={whole} />}
        knows={(at) => (isCode(nodes.text(at, "kind")) ? (nodes.label[at] ?? "") : "")}
        selected={selected}
        onSelect={select}
        onOpen={(at) => {
          if (at > 0) change({ root: nodes.path(at) });
        }}
        onOut={() => change({ root: nodes.above.slice(0, -1) })}
        onMenu={(at, x, y) => {
          select(at);
          setMenu({ at, x, y });
        }}
      />
      {selected >= 0 && selected < nodes.count && <Details at={nodes.pointed(selected)} whole={whole} />}
      {menu && menu.at < nodes.count && (
        <Menu
          at={nodes.pointed(menu.at)}
          x={menu.x}
          y={menu.y}
          more={[{ key: "t", title: "Copy tree as text", run: () => void copy(treeText(nodes, menu.at, (value) => amount(value, whole.unit)), "tree") }]}
          onClose={() => setMenu(null)}
        />
      )}
    </>
  );
}
