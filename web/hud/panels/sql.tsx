/** SQL over all tables of the trace. */

import { useState } from "preact/hooks";
import type { Panel } from "../app/panel.ts";
import { Box, Fault, Nothing } from "../parts/box.tsx";
import { RowsGrid } from "../parts/rows_grid.tsx";
import { set, setting, view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";

interface Settings {
  text: string;
}

const FIRST = "SELECT name, title FROM event_type LIMIT 20";

function Sql() {
  const { text } = setting<Settings>("sql", { text: FIRST });
  const [draft, setDraft] = useState(text);
  const trace = view.value.trace;
  const answer = useAnswer(`sql ${trace} ${text}`, (signal) => askRows("sql", { trace, sql: text }, signal));
  return (
    <Box title="SQL" fill>
      <textarea aria-label="Query" spellcheck={false} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
      <button type="button" onClick={() => set<Settings>("sql", { text: draft })}>
        Run
      </button>
      <Fault error={answer.error} />
      {answer.value && (answer.value.count > 0 ? <RowsGrid label="Result" rows={answer.value} /> : <Nothing why="No rows." />)}
    </Box>
  );
}

export const panel: Panel = {
  id: "sql",
  title: "SQL",
  group: "tools",
  order: 10,
  about: "Any question over all tables",
  tables: [],
  View: Sql,
};
