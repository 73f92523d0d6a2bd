/** Functions, and both sides of one: who calls it, what it calls. */

import { useMemo, useState } from "preact/hooks";
import { amount, visible } from "../../base/value.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import { Fault, Nothing, Sql } from "../box.tsx";
import { Grid, type GridColumn } from "../grid.tsx";
import { change, isCode, Nodes, percent, pointed, question, settings } from "./model.ts";
import { Tree } from "./tree.tsx";

const COLUMNS: GridColumn[] = [
  { id: "name", title: "Function", doc: "module!function; module!? where no symbol is known", width: "minmax(150px, 1fr)" },
  { id: "own", title: "Own", doc: "Itself: where stacks end", number: true, width: "92px", sortable: true },
  { id: "total", title: "Total", doc: "With all that it called; recursion counts once", number: true, width: "92px", sortable: true },
];

function Functions(props: { about: string }) {
  const { search } = settings();
  const [byTotal, setByTotal] = useState(false);
  const body = { ...question(false), search, by_total: byTotal };
  const answer = useAnswer(`functions ${JSON.stringify(body)}`, (signal) => askRows("functions", body, signal), 60);
  const rows = answer.value;
  const unit = rows?.facts.unit ?? "";
  const name = (row: number) => rows?.text(row, "name") ?? "";
  return (
    <div class="stack-functions" data-part="functions">
      <Fault error={answer.error} />
      {rows && (
        <>
          <p class="about">
            {amount(rows.facts.matched, "count")} of {amount(rows.facts.functions, "count")} functions{rows.facts.matched > rows.count ? `, the first ${rows.count}` : ""}
          </p>
          <Grid
            label="Functions"
            columns={COLUMNS.map((one) => (one.number ? { ...one, amounts: { unit, with: "weight", of: (row: number) => rows.num(row, one.id) } } : one))}
            count={rows.count}
            text={(row) => visible(name(row))}
            draw={(row, column) =>
              column === 0 ? (
                <span class={`name${rows.get(row, "security") === true ? " security" : ""}`} {...(isCode(rows.text(row, "kind")) ? { "data-knows": name(row) } : {})}>
                  {rows.get(row, "security") === true ? "[S] " : ""}
                  {visible(name(row))}
                </span>
              ) : null
            }
            sort={{ id: byTotal ? "total" : "own", down: true }}
            onSort={(id) => setByTotal(id === "total")}
            selected={(row) => name(row) === props.about}
            onActivate={(row) => change({ about: name(row) })}
            onFocus={(row) => {
              if (!rows) return;
              pointed.value = {
                label: name(row), kind: rows.text(row, "kind"), module: rows.text(row, "module"), category: rows.text(row, "category"), tag: rows.text(row, "tag"),
                security: rows.get(row, "security") === true, total: rows.num(row, "total"), own: rows.num(row, "own"), count: rows.num(row, "count"), path: [], inverted: false,
              };
            }}
          />
        </>
      )}
    </div>
  );
}

export function ButterflyTab() {
  const { about } = settings();
  const body = { ...question(false), function: about };
  const answer = useAnswer(about ? `butterfly ${JSON.stringify(body)}` : null, (signal) => askRows("butterfly", body, signal), 60);
  const rows = answer.value;
  const wings = useMemo(() => (rows ? [new Nodes(rows, "callers", [], true), new Nodes(rows, "callees", [], false)] : []), [rows]);
  const facts = rows?.facts;
  const unit = rows?.facts.unit ?? "";
  const whole = useMemo(() => ({ unit, total: rows?.facts.total ?? 0, before: null }), [rows]);
  const groups = facts?.groups ?? [];
  const [callers, callees] = wings;
  return (
    <div class="stack-butterfly" data-part="butterfly">
      <Functions about={about} />
      <div class="stack-wings">
        {!about && <p class="nothing">Choose a function on the left (Enter), or “Butterfly” in the menu of a box.</p>}
        <Fault error={answer.error} />
        {rows && about && facts?.inclusive_count === 0 && <Nothing why={rows.facts.why ?? `${visible(about)} is on no stack of this part of the trace.`} record={rows.facts.record} />}
        {facts && about && facts.inclusive_count > 0 && callers && callees && (
          <>
            <p class="stack-sum">
              <b class="name" data-knows={about}>{visible(about)}</b>: {amount(facts.inclusive, unit)} with all that it called ({percent(facts.inclusive, facts.total)}), {amount(facts.exclusive, unit)} itself ({percent(facts.exclusive, facts.total)})
              {facts.recursive > 0 && `; ${amount(facts.recursive, unit)} with it on the stack more than once, counted once`} <Sql sql={facts.sql} />
            </p>
            <h3>Callers (who calls it, outwards)</h3>
            <Tree nodes={callers} whole={whole} label="Callers" details={false} narrow />
            <h3>Callees (what it calls)</h3>
            <Tree nodes={callees} whole={whole} label="Callees" details={false} narrow />
            {groups.some((group) => group.name) && (
              <>
                <h3>Where it runs</h3>
                <Grid
                  label="Where it runs"
                  columns={[
                    { id: "name", title: "Where", width: "minmax(150px, 1fr)" },
                    { id: "total", title: "Total", number: true, amounts: { unit, with: "weight", of: (row) => groups[row]?.total } },
                    { id: "own", title: "Own", number: true, amounts: { unit, with: "weight", of: (row) => groups[row]?.own } },
                    { id: "count", title: "Count", number: true, amounts: { unit: "count", of: (row) => groups[row]?.count } },
                  ]}
                  count={groups.length}
                  text={(row) => visible(groups[row]?.name ?? "")}
                  most={4}
                />
              </>
            )}
          </>
        )}
      </div>
    </div>
  );
}
