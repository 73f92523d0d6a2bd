/** What went wrong while recording and reading: every number rests on it. */

import type { Panel } from "../app/panel.ts";
import { Box, Fault, Sql } from "../parts/box.tsx";
import { RowsGrid } from "../parts/rows_grid.tsx";
import { view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";

const QUERY = "SELECT severity, name, count, stage, meaning FROM ledger ORDER BY severity, count DESC";

function Ledger() {
  const trace = view.value.trace;
  const answer = useAnswer(`ledger ${trace}`, (signal) => askRows("figures", { trace, sql: QUERY }, signal));
  return (
    <Box title="Ledger" fill tools={<Sql sql={QUERY} />}>
      <p class="about">What was lost, damaged or not understood, counted: what rests on it is less certain. Clean traces have few lines here, none of them an error.</p>
      <Fault error={answer.error} />
      {answer.value && (answer.value.count > 0 ? <RowsGrid label="Ledger" rows={answer.value} /> : <p class="nothing">Nothing went wrong.</p>)}
    </Box>
  );
}

export const panel: Panel = {
  id: "ledger",
  title: "Ledger",
  group: "tools",
  order: 30,
  about: "What was lost or damaged, and what it means for the numbers",
  tables: [],
  View: Ledger,
};
