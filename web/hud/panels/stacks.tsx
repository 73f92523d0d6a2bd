/** Where a metric went, along stacks: flame graph, icicle in the order of time, trees, butterfly. */

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { onDemand } from "../app/on_demand.tsx";
import type { Panel } from "../app/panel.ts";
import { bind } from "../base/keys.ts";
import { amount, counted } from "../base/value.ts";
import { Box, Fault, Nothing, Sql } from "../parts/box.tsx";
import { Bar, focusSearch, Steps, Trail } from "../parts/stacks/bar.tsx";
import { colorKey } from "../parts/stacks/colors.ts";
import { saveCsv, saveFolded } from "../parts/stacks/export.ts";
import { Flame } from "../parts/stacks/flame.tsx";
import { Differences, Legend } from "../parts/stacks/legend.tsx";
import { act, GENERAL, KEYS } from "../parts/stacks/menu.tsx";
import { change, compared, Nodes, percent, pointed, question, searched, settings, TABS } from "../parts/stacks/model.ts";
import { Tree } from "../parts/stacks/tree.tsx";
import type { Whole } from "../parts/stacks/tip.tsx";
import { view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";
import type { Rows } from "../wire/rows.ts";
import type { TreeFacts } from "../wire/types.ts";

const ButterflyTab = onDemand((more) => more.ButterflyTab);
const ChartTab = onDemand((more) => more.ChartTab);

/** What is missing or must be known of an answer. */
function Notes(props: { facts: TreeFacts }) {
  const { facts } = props;
  const { unit, unused } = facts;
  return (
    <>
      {unused.length > 0 && (
        <p class="stack-note" role="note">
          Rows of table {facts.table} have no {unused.map((one) => (one === "range" ? "time" : one)).join(", ")}: this metric ignores {unused.join(" and ")}, all rows count.
        </p>
      )}
      {!facts.root_found && (
        <p class="stack-note" role="note">
          What was zoomed into is not in this part of the trace: all of it is shown.
        </p>
      )}
      {facts.no_stack > 0 && (
        <p class="stack-note" role="note">
          {amount(facts.no_stack, unit)} ({percent(facts.no_stack, facts.total)}) have no stack: stacks of these events were not recorded.
          {facts.stacks_record && (
            <>
              {" "}
              This recording has them: <code>{facts.stacks_record}</code>
            </>
          )}
        </p>
      )}
      {facts.refused > 0 && <p class="stack-note">{amount(facts.refused, "count")} stacks were too many and count in part of their frames.</p>}
      {facts.gone !== null && facts.gone > 0 && <p class="stack-note">{amount(facts.gone, unit)} of the other side are on stacks that this side does not have.</p>}
    </>
  );
}

/** What the picture of the tab shows, for the tools in the heading. */
const drawn = signal<{ nodes: Nodes; rows: Rows<TreeFacts>; name: string } | null>(null);

/** How the picture is drawn, and files of it. */
function Tools(props: { flame: boolean }) {
  const all = settings();
  const now = drawn.value;
  return (
    <>
      <span class="grow" />
      {view.value.other && (
        <button type="button" class="small" aria-pressed={all.compare} onClick={() => change({ compare: !all.compare })}>
          Compare
        </button>
      )}
      {props.flame && (
        <>
          <button type="button" class="small" aria-pressed={all.up} onClick={() => change({ up: !all.up })} title="Flame: callers below; icicle: callers above">
            Flames up
          </button>
          <button type="button" class="small" aria-pressed={all.table} data-part="as-table" onClick={() => change({ table: !all.table })}>
            Show as table
          </button>
        </>
      )}
      <button type="button" class="small" disabled={!now} onClick={() => now && saveFolded(now.nodes, now.name)}>
        Folded stacks
      </button>
      <button type="button" class="small" disabled={!now} onClick={() => now && saveCsv(now.rows, now.name)}>
        CSV
      </button>
      <Sql sql={now?.rows.facts.sql} />
    </>
  );
}

function Picture(props: { tab: "flame" | "tree" | "inverted" }) {
  const { tab } = props;
  const all = settings();
  const inverted = tab === "flame" ? all.inverted : tab === "inverted";
  const other = compared();
  // Zooming and looking differ in what is asked, not in what is counted: the server keeps the tree.
  const width = tab === "flame" ? Math.max(400, Math.min(4000, innerWidth - 220)) : 4000;
  const body = { ...question(inverted), root: all.root, width, other };
  const answer = useAnswer(
    `tree ${JSON.stringify(body)}`,
    async (signal) => ({ rows: await askRows("tree", body, signal), root: all.root, inverted }),
    40,
  );
  const rows = answer.value?.rows ?? null;
  const nodes = useMemo(() => (answer.value ? new Nodes(answer.value.rows, "tree", answer.value.rows.facts.root_found ? answer.value.root : [], answer.value.inverted) : null), [answer.value]);
  const facts = rows?.facts;
  const unit = facts?.unit ?? "";
  const whole = useMemo((): Whole => ({ unit, total: rows?.facts.total ?? 0, before: rows?.facts.before_total ?? null }), [rows]);
  const found = useMemo(() => (nodes ? searched(nodes, all.search) : null), [nodes, all.search]);
  const keys = useMemo(
    () => (nodes ? Array.from({ length: nodes.count }, (_, at) => colorKey({ label: nodes.label[at] ?? "", kind: nodes.text(at, "kind"), module: nodes.text(at, "module"), category: nodes.text(at, "category"), tag: nodes.text(at, "tag") }, all.color)) : []),
    [nodes, all.color],
  );
  const hidden = facts && facts.left_out > 0 ? `${counted(facts.left_out, "small frame")} hidden, zoom to show` : "";
  const label = tab === "flame" ? "Flame graph" : tab === "tree" ? "Top-down tree" : "Inverted tree";
  useEffect(() => {
    drawn.value = nodes && rows ? { nodes, rows, name: `stacks-${all.metric}-${tab}` } : null;
    return () => void (drawn.value = null);
  }, [nodes, rows, all.metric, tab]);
  return (
    <>
      <div class="stack-tools">
        <Bar found={found && nodes ? `${counted(found.count, "box matches", "boxes match")}: ${percent(found.weight, whole.total)} of ${amount(whole.total, unit)}` : ""} />
        <Steps tree={tab !== "flame"} />
        <div class="stack-row sum" data-part="sum" aria-busy={answer.pending}>
          {facts && (
            <span data-total={facts.total} data-part-total={facts.part_total} title={`${amount(nodes?.count ?? 0, "count")} of ${amount(facts.nodes, "count")} nodes${hidden && `; ${hidden}`}`}>
              <b>{amount(facts.total, unit)}</b>
              {unit !== "count" && ` in ${amount(facts.count, "count")} events`}
              {facts.part_total !== facts.total && `, of ${amount(facts.part_total, unit)} before the steps`}
            </span>
          )}
        </div>
      </div>
      <Trail />
      <Fault error={answer.error} />
      {facts && <Notes facts={facts} />}
      {facts?.count === 0 && <Nothing why={facts.why ?? "Nothing of this metric is here."} record={facts.record} />}
      {nodes && facts && facts.count > 0 && (
        <>
          {tab === "flame" ? <Flame nodes={nodes} whole={whole} label={`${label} of ${all.metric}`} /> : <Tree nodes={nodes} whole={whole} label={`${label} of ${all.metric}`} canZoom />}
          {tab === "flame" && !all.table && whole.before === null && <Legend keys={keys} weight={(at) => nodes.own[at] ?? 0} security={keys.some((_, at) => nodes.security(at))} note={hidden} />}
          {tab === "flame" && whole.before !== null && <Differences more="a larger share than on the other side" less="a smaller one; both sides count as 100 %" />}
        </>
      )}
    </>
  );
}

function Stacks() {
  const { tab } = settings();
  useEffect(() => {
    pointed.value = null;
    return bind("Stacks", [
      { key: "/", about: "search functions", run: focusSearch },
      ...KEYS.map(([key, about]) => ({ key, about, run: () => act(key) })),
      ...GENERAL.map((one) => ({ key: one.key, about: one.title, run: one.run })),
    ]);
  }, []);
  return (
    <Box
      title="Stacks"
      fill
      tools={
        <>
          <div class="tabs" role="tablist" aria-label="Pictures of stacks">
            {TABS.map(([id, title]) => (
              <button
                type="button"
                role="tab"
                key={id}
                id={`stack-tab-${id}`}
                aria-selected={tab === id}
                aria-controls="stack-body"
                tabIndex={tab === id ? 0 : -1}
                onClick={() => change({ tab: id, root: [] })}
                onKeyDown={(event) => {
                  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
                  const next = TABS[(TABS.findIndex(([one]) => one === id) + by + TABS.length) % TABS.length];
                  if (by === 0 || !next) return;
                  event.preventDefault();
                  change({ tab: next[0], root: [] });
                  document.getElementById(`stack-tab-${next[0]}`)?.focus();
                }}
              >
                {title}
              </button>
            ))}
          </div>
          {tab !== "chart" && tab !== "butterfly" && <Tools flame={tab === "flame"} />}
        </>
      }
    >
      <div class="stack-body" id="stack-body" role="tabpanel" aria-labelledby={`stack-tab-${tab}`} data-tab={tab}>
        {tab === "chart" && (
          <>
            <div class="stack-tools">
              <Bar found="" chart />
            </div>
            <ChartTab />
          </>
        )}
        {tab === "butterfly" && (
          <>
            <div class="stack-tools">
              <Bar found="" />
              <Steps tree />
            </div>
            <ButterflyTab />
          </>
        )}
        {tab !== "chart" && tab !== "butterfly" && <Picture key={tab} tab={tab} />}
      </div>
    </Box>
  );
}

export const panel: Panel = {
  id: "stacks",
  title: "Stacks",
  group: "look",
  order: 20,
  about: "Where CPU, waiting, bytes and more went, along stacks: flame graph, trees, butterfly",
  tables: [],
  View: Stacks,
};
