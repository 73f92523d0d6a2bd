/** SQL over all tables and views of the trace, with what each table and column means beside it. */

import { useState } from "preact/hooks";
import { count } from "../../src/lib/format.ts";
import { Bones } from "../parts/bones.tsx";
import { Box, copy, Fault, Nothing } from "../parts/box.tsx";
import { RowsGrid } from "../parts/rows_grid.tsx";
import { say } from "../parts/live.tsx";
import { SqlEditor } from "../parts/sql_editor.tsx";
import { schema, scope, set, setting, view, whole } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows, save } from "../wire/api.ts";
import { counted } from "../base/value.ts";

interface Settings {
  text: string;
}

const FIRST = "SELECT provider, name, count, decoded_by\nFROM event_type\nORDER BY count DESC\nLIMIT 50";

/** The query with the range in it. */
function filled(text: string): string {
  const [from, to] = scope.value ?? whole.value;
  return text.replaceAll("{from}", String(Math.floor(from))).replaceAll("{to}", String(Math.ceil(to)));
}

/** Tables and views by name: a click puts a query into the editor. */
function Tables(props: { onChoose: (text: string) => void }) {
  const [wanted, setWanted] = useState("");
  const known = schema.value;
  if (!known) return null;
  const fits = (name: string, title: string) => `${name} ${title}`.toLowerCase().includes(wanted.toLowerCase());
  return (
    <div class="sql-tables">
      <input type="search" aria-label="Find a table" placeholder="Find a table" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      <div class="sql-list" tabIndex={0} role="region" aria-label="Tables and views">
        <h2>Views</h2>
        {known.views
          .filter((one) => fits(one.name, one.title))
          .map((one) => (
            <details key={one.name}>
              <summary>
                <code>{one.name}</code>
              </summary>
              <p class="about">{one.title}</p>
              <button type="button" class="small" onClick={() => props.onChoose(`SELECT * FROM ${one.name} LIMIT 100`)}>
                Query
              </button>
              <dl>
                {one.columns.map(([name, about]) => (
                  <div key={name}>
                    <dt>
                      <code>{name}</code>
                    </dt>
                    <dd>{about}</dd>
                  </div>
                ))}
              </dl>
            </details>
          ))}
        <h2>Tables</h2>
        {known.tables
          .filter((one) => fits(one.name, one.title))
          .map((one) => (
            <details key={one.name}>
              <summary class={one.rows === 0 ? "muted" : ""}>
                <code>{one.name}</code> {one.rows > 0 ? count(one.rows) : "empty"}
              </summary>
              <p class="about">{one.title}</p>
              {one.rows === 0 && <p class="about">{one.why_empty}</p>}
              <button type="button" class="small" onClick={() => props.onChoose(`SELECT *\nFROM ${one.name}\n${one.sorted_by?.endsWith("_ns") ? `WHERE ${one.sorted_by} >= {from} AND ${one.sorted_by} < {to}\n` : ""}LIMIT 100`)}>
                Query
              </button>
              <dl>
                {one.columns.map((column) => (
                  <div key={column.name}>
                    <dt>
                      <code>{column.name}</code> <span class="muted">{column.unit === "none" ? column.type : column.unit}</span>
                    </dt>
                    <dd>{column.doc}</dd>
                  </div>
                ))}
              </dl>
            </details>
          ))}
      </div>
    </div>
  );
}

export function SqlPanel() {
  const { text } = setting<Settings>("sql", { text: FIRST });
  const [draft, setDraft] = useState(text);
  const [shown, setShown] = useState(text);
  // Another panel, a link or the back button brought another query.
  if (shown !== text) {
    setShown(text);
    setDraft(text);
  }
  const trace = view.value.trace;
  const sql = filled(text);
  const asked = `sql ${trace} ${sql}`;
  const [stopped, setStopped] = useState<string | null>(null);
  const answer = useAnswer(stopped === asked ? null : asked, (signal) => askRows("sql", { trace, sql, limit: 10_000 }, signal));
  // The answer before this one is not this one's.
  const rows = answer.pending ? null : answer.value;
  const run = () => {
    setStopped(null);
    set<Settings>("sql", { text: draft });
  };
  const file = (format: string) => {
    save("sql_file", { trace, sql, format }).then(
      (name) => say(`${name}: saved`),
      (error: unknown) => say(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <div class="sql-panel">
      <Tables
        onChoose={(query) => {
          setDraft(query);
          set<Settings>("sql", { text: query });
        }}
      />
      <Box
        title="SQL"
        fill
        tools={
          <>
            {answer.pending ? (
              <button type="button" class="primary" onClick={() => setStopped(asked)}>
                Stop
              </button>
            ) : (
              <button type="button" class="primary" onClick={run}>
                Run
              </button>
            )}
            {[["csv", "CSV"], ["json", "JSON"], ["parquet", "Parquet"]].map(([format = "", name]) => (
              <button type="button" class="small" key={format} disabled={!rows} onClick={() => file(format)}>
                {name}
              </button>
            ))}
            <button type="button" class="small" onClick={() => void copy(`etwhy sql TRACE "${sql.replaceAll('"', '\\"')}"`, "command")}>
              Copy command
            </button>
          </>
        }
      >
        <SqlEditor text={draft} onInput={setDraft} onRun={run} />
        <Fault error={answer.error} />
        {answer.pending && (
          <>
            <p class="about" role="status">
              Running query …
            </p>
            <Bones lines={6} />
          </>
        )}
        {stopped === asked && <p class="about">Stopped. Press Run to ask again.</p>}
        {rows && (
          <p class="about" data-part="sql-count">
            {counted(rows.count, "row")}{rows.facts.more ? "; there are more: only the first are shown, a file holds all" : ""}
          </p>
        )}
        {rows && (rows.count > 0 ? <RowsGrid label="Result" rows={rows} /> : <Nothing why="The query has no rows for this trace." />)}
      </Box>
    </div>
  );
}
