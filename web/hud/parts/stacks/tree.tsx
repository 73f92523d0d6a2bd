/** A tree of nodes as a grid: levels open and close. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { amount, visible } from "../../base/value.ts";
import { copy } from "../box.tsx";
import { Grid, type GridColumn } from "../grid.tsx";
import { colorKey, paint } from "./colors.ts";
import { nodeCard } from "./card.tsx";
import { Details } from "./details.tsx";
import { treeText } from "./export.ts";
import { Menu } from "./menu.tsx";
import { change, isCode, percent, pointed, searched, settings, type Nodes } from "./model.ts";
import { difference, points, type Whole } from "./tip.tsx";

/** Rows in sight: nodes, and what stands for children that were left out (−1 − node). */
function rowsOf(nodes: Nodes, open: Set<number>, keep: ((at: number) => boolean) | null): number[] {
  const out: number[] = [];
  const walk: number[] = nodes.count > 0 ? [0] : [];
  while (walk.length > 0) {
    const at = walk.pop() as number;
    out.push(at);
    if (at < 0 || !open.has(at)) continue;
    const children = (nodes.children[at] ?? []).filter((child) => keep === null || keep(child));
    if (keep === null && nodes.num(at, "left_out") > 0) walk.push(-1 - at);
    for (let place = children.length - 1; place >= 0; place -= 1) walk.push(children[place] ?? 0);
  }
  return out;
}

/** The node and the heaviest below it, down to where the weight parts. */
function heaviest(nodes: Nodes, from: number): number[] {
  const path: number[] = [];
  let at = from;
  for (;;) {
    path.push(at);
    const next = nodes.children[at]?.[0];
    if (next === undefined || (nodes.total[next] ?? 0) < 0.3 * (nodes.total[from] ?? 0)) return path;
    at = next;
  }
}

const figure = (text: string, doc: string, id: string): GridColumn => ({ id, title: text, doc, number: true, width: "92px" });

export function Tree(props: { nodes: Nodes; whole: Whole; label: string; canZoom?: boolean; details?: boolean; narrow?: boolean }) {
  const { nodes, whole } = props;
  const { search, color } = settings();
  const [open, setOpen] = useState<Set<number>>(new Set());
  const [focus, setFocus] = useState(-1);
  const [menu, setMenu] = useState<{ at: number; x: number; y: number } | null>(null);
  useEffect(() => {
    setOpen(new Set(heaviest(nodes, 0)));
    setFocus(-1);
  }, [nodes]);
  const found = useMemo(() => searched(nodes, search), [nodes, search]);
  const rows = useMemo(() => {
    if (!found) return rowsOf(nodes, open, null);
    const all = new Set<number>(open);
    for (let at = 0; at < nodes.count; at += 1) if (found.under[at] === 1) all.add(at);
    // Matches and what stands above them; below a match everything that is open.
    const inside = new Uint8Array(nodes.count);
    for (let at = 0; at < nodes.count; at += 1) inside[at] = found.hit[at] === 1 || inside[nodes.parent[at] ?? -1] === 1 ? 1 : 0;
    return rowsOf(nodes, all, (at) => found.under[at] === 1 || inside[at] === 1);
  }, [nodes, open, found]);
  const compare = whole.before !== null;
  /** Of a row: of its node, or of what was left out of it. */
  const weigh = (of: (at: number) => number, left?: string) => ({
    unit: whole.unit,
    with: "weight",
    of: (row: number) => {
      const at = rows[row] ?? 0;
      return at >= 0 ? of(at) : left ? nodes.num(-1 - at, left) : undefined;
    },
  });
  const columns: GridColumn[] = [
    { id: "name", title: "Function", doc: "module!function; module!? where no symbol is known", width: props.narrow ? "minmax(180px, 1fr)" : "minmax(260px, 1fr)" },
    { ...figure("Total", "With all that it called", "total"), amounts: weigh((at) => nodes.total[at] ?? 0, "left_weight") },
    { ...figure("Total %", "Share of the whole", "share"), width: "84px" },
    // Turned around, a stack ends at its outermost caller: that is nobody's own cost.
    ...(nodes.inverted ? [] : [{ ...figure("Own", "Itself: where stacks end", "own"), amounts: weigh((at) => nodes.own[at] ?? 0) }]),
    ...(props.narrow || nodes.inverted ? [] : [{ ...figure("Own %", "Share of the whole", "own_share"), width: "76px" }]),
    { ...figure("Count", "Events: samples, waits, transfers", "count"), width: "84px" },
    ...(compare ? [{ ...figure("Before", "The same path in what it is compared with", "before"), amounts: weigh((at) => nodes.before[at] ?? 0) }, figure("Before %", "Its share there", "before_share"), { ...figure("Difference", "Of the shares, in points of a hundred", "difference"), width: "124px" }] : []),
  ];
  const text = (row: number, column: number): string => {
    const at = rows[row] ?? 0;
    if (at < 0) {
      const node = -1 - at;
      return [`… ${nodes.num(node, "left_out")} smaller ones`, "", percent(nodes.num(node, "left_weight"), whole.total)][column] ?? "";
    }
    const [total, own] = [nodes.total[at] ?? 0, nodes.own[at] ?? 0];
    switch (columns[column]?.id) {
      case "name": return `${nodes.security(at) ? "[S] " : ""}${visible(nodes.label[at] ?? "")}`;
      case "share": return percent(total, whole.total);
      case "own_share": return percent(own, whole.total);
      case "count": return amount(nodes.num(at, "count"), "count");
      case "before_share": return percent(nodes.before[at] ?? 0, whole.before ?? 0);
      case "difference": return points(difference(nodes, at, whole));
      default: return "";
    }
  };
  const colors = paint();
  const draw = (row: number, column: number) => {
    const at = rows[row] ?? 0;
    const id = columns[column]?.id;
    if (at < 0) return null;
    if (id === "name") {
      const of = { label: nodes.label[at] ?? "", kind: nodes.text(at, "kind"), module: nodes.text(at, "module"), category: nodes.text(at, "category"), tag: nodes.text(at, "tag") };
      return (
        <span class={`name${nodes.security(at) ? " security" : ""}${found && found.hit[at] === 1 ? " hit" : ""}`} {...(isCode(of.kind) ? { "data-knows": of.label } : {})}>
          <i class="swatch" aria-hidden="true" style={{ background: colors.fill(colorKey(of, color)) }} />
          {text(row, column)}
        </span>
      );
    }
    if (id === "share" || id === "own_share") {
      const value = id === "share" ? (nodes.total[at] ?? 0) : (nodes.own[at] ?? 0);
      return (
        <span class="share">
          <i aria-hidden="true" style={{ width: `${whole.total > 0 ? Math.min(100, (100 * value) / whole.total) : 0}%` }} />
          <span>{text(row, column)}</span>
        </span>
      );
    }
    return null;
  };
  const toggle = (row: number) => {
    const at = rows[row] ?? -1;
    if (at < 0) return;
    const next = new Set(open);
    if (!next.delete(at)) next.add(at);
    setOpen(next);
  };
  const expandable = (at: number) => at >= 0 && ((nodes.children[at]?.length ?? 0) > 0 || nodes.num(at, "left_out") > 0);
  const zoom = (at: number) => props.canZoom && change({ root: nodes.path(at < 0 ? -1 - at : at) });
  const onKey = (event: KeyboardEvent, row: number): boolean => {
    const at = rows[row] ?? -1;
    if (event.key === "*") {
      setOpen(new Set([...open, ...heaviest(nodes, Math.max(0, at))]));
      return true;
    }
    if (event.key === "Escape" && props.canZoom && nodes.above.length > 0) {
      change({ root: nodes.above.slice(0, -1) });
      return true;
    }
    if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && at >= 0) {
      const rect = (event.target as HTMLElement).getBoundingClientRect();
      setMenu({ at, x: rect.left + 40, y: rect.bottom });
      return true;
    }
    return false;
  };
  const onFocus = (row: number) => {
    const at = rows[row] ?? -1;
    setFocus(at);
    if (at >= 0) pointed.value = nodes.pointed(at);
  };
  return (
    <>
      <div
        class="stack-tree"
        data-part="tree"
        onContextMenu={(event) => {
          const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-cell]");
          const at = rows[Number(cell?.dataset["cell"]?.split(":")[0] ?? -1)] ?? -1;
          if (at < 0) return;
          event.preventDefault();
          pointed.value = nodes.pointed(at);
          setMenu({ at, x: event.clientX, y: event.clientY });
        }}
      >
        <Grid
          label={props.label}
          columns={columns}
          count={rows.length}
          text={text}
          draw={draw}
          tree={{
            level: (row) => { const at = rows[row] ?? 0; return at < 0 ? (nodes.depth[-1 - at] ?? 0) + 2 : (nodes.depth[at] ?? 0) + 1; },
            open: (row) => { const at = rows[row] ?? -1; return expandable(at) ? open.has(at) || (found?.under[at] === 1) : null; },
            toggle,
          }}
          selected={(row) => (rows[row] ?? -1) === focus}
          onFocus={onFocus}
          card={(row) => ((rows[row] ?? -1) > 0 ? nodeCard(nodes, rows[row] ?? 0, whole) : null)}
          onActivate={(row) => zoom(rows[row] ?? 0)}
          onKey={onKey}
        />
      </div>
      {props.details !== false && focus >= 0 && focus < nodes.count && <Details at={nodes.pointed(focus)} whole={whole} />}
      {menu && menu.at < nodes.count && (
        <Menu at={nodes.pointed(menu.at)} x={menu.x} y={menu.y} more={[{ key: "t", title: "Copy tree as text", run: () => void copy(treeText(nodes, menu.at, (value) => amount(value, whole.unit)), "tree") }]} onClose={() => setMenu(null)} />
      )}
    </>
  );
}
