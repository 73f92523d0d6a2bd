/** Stacks of B, coloured by what changed since A. Zoom and steps are those of the panel of stacks. */

import { useMemo } from "preact/hooks";
import { look, set, setting, view } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import { Bones } from "../bones.tsx";
import { Box, Fault, Nothing, Sql } from "../box.tsx";
import { Trail } from "../stacks/bar.tsx";
import { Flame } from "../stacks/flame.tsx";
import { Differences } from "../stacks/legend.tsx";
import { FALLBACK, type Settings } from "./ranges.tsx";
import { useRuns } from "./runs.ts";
import { DEFAULTS, Nodes, PANEL, question, settings } from "../stacks/model.ts";

export function DifferentialFlame(props: { lengths: [number, number] }) {
  const { basis } = setting<Settings>("compare", FALLBACK);
  const all = settings();
  // CPU time of threads alone would not show what DPCs and ISRs cost more.
  const metric = all.metric === DEFAULTS.metric ? "busy" : all.metric;
  // The table beside it is about the whole of both traces.
  const body = { ...question(false), range: null, filters: [], metric, root: all.root, width: 800, other: { trace: view.value.other?.trace ?? 0, range: null } };
  const answer = useAnswer(`tree ${JSON.stringify(body)}`, async (signal) => ({ rows: await askRows("tree", body, signal), root: all.root }), 40);
  const nodes = useMemo(() => (answer.value ? new Nodes(answer.value.rows, "tree", answer.value.rows.facts.root_found ? answer.value.root : [], false) : null), [answer.value]);
  const facts = answer.value?.rows.facts;
  // As in the table beside it: what a function costs more, not what its share of the whole has become.
  const run = useRuns()?.chosen;
  const [a, b] = basis === "second" ? props.lengths : basis === "run" && run ? run.times : [1, 1];
  const longer = a > 0 && b > 0 ? a / b : 1;
  const change = basis === "second" ? "time per second" : basis === "run" && run ? "time per run" : "time";
  const whole = useMemo(() => ({ unit: facts?.unit ?? "", total: facts?.total ?? 0, before: (facts?.total ?? 0) * longer, change }), [facts, longer, change]);
  return (
    <Box
      title="Differential flame"
      fill
      tools={
        <>
          <span class="grow" />
          <button type="button" class="small" onClick={() => { set(PANEL, { compare: true, tab: "flame", metric }); look({ panel: PANEL }); }}>
            Open stacks
          </button>
          <Sql sql={facts?.sql} />
        </>
      }
    >
      <div class="stack-body">
        <Trail />
        <Fault error={answer.error} />
        {!facts && !answer.error && <Bones lines={6} />}
        {facts?.count === 0 && <Nothing why={facts.why ?? "B has no stacks of this."} record={facts.record} />}
        {nodes && facts && facts.count > 0 && <Flame nodes={nodes} whole={whole} label={`Differential flame graph of ${metric}`} />}
        {nodes && <Differences more="more than in A" less="less; as wide as in B" />}
      </div>
    </Box>
  );
}
