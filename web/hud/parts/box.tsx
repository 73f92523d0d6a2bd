/** What panels are made of: boxes with a title, reasons for emptiness, the SQL behind numbers. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { inside } from "../state/finding.ts";
import { look, set, table } from "../state/view.ts";
import { say } from "./live.tsx";
import { Words } from "./words.tsx";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what}: copied`);
  } catch {
    say(`${what}: the browser does not allow copying`);
  }
}

/** A titled part of a panel. */
export function Box(props: { title: string; id?: string; tools?: ComponentChildren; children: ComponentChildren; fill?: boolean }) {
  return (
    <section class={props.fill ? "box fill" : "box"} aria-label={props.title} id={props.id}>
      <header>
        <h2>{props.title}</h2>
        <div class="tools">{props.tools}</div>
      </header>
      {props.children}
    </section>
  );
}

/** Why there is nothing, and what would give it. */
export function Nothing(props: { why: string; record?: string | null | undefined }) {
  return (
    <div class="nothing" role="note">
      <p>
        <Words text={props.why} />
      </p>
      {props.record && (
        <p>
          Record it with: <code>{props.record}</code>{" "}
          <button type="button" class="small" onClick={() => void copy(props.record ?? "", "command")}>
            Copy
          </button>
        </p>
      )}
    </div>
  );
}

/** Why none of these tables has rows; null if one has. */
export function whyEmpty(names: string[]): { why: string; record: string | null } | null {
  const found = names.map((name) => table(name));
  if (names.length === 0 || found.some((one) => one && one.rows > 0)) return null;
  const first = found.find((one) => one);
  if (!first) return { why: "This trace has no such table.", record: null };
  return { why: first.why_empty?.replace(/; record: .*$/, ".").replace(/^table (\w+) is empty: none of its events were recorded/, `This trace holds no such events: ${inside(first.title)} (table $1)`) ?? `Table ${first.name} is empty in this trace.`, record: first.recording };
}

/** The query behind what is shown. */
export function Sql(props: { sql: string | string[] | null | undefined }) {
  const [open, setOpen] = useState(false);
  const list = (Array.isArray(props.sql) ? props.sql : [props.sql]).filter((one): one is string => Boolean(one));
  if (list.length === 0) return null;
  return (
    <div class="behind">
      <button type="button" class="small" aria-expanded={open} onClick={() => setOpen(!open)}>
        SQL
      </button>
      {open &&
        list.map((sql) => (
          <div class="sql" key={sql}>
            <pre tabIndex={0}>
              <code>{sql}</code>
            </pre>
            <button type="button" class="small" onClick={() => void copy(sql, "query")}>
              Copy
            </button>
            <button
              type="button"
              class="small"
              onClick={() => {
                set("sql", { text: sql });
                look({ panel: "sql" });
              }}
            >
              Open in SQL
            </button>
          </div>
        ))}
    </div>
  );
}

/** A fault of a question. */
export function Fault(props: { error: string | null }) {
  return props.error ? (
    <p class="fault" role="alert">
      {props.error}
    </p>
  ) : null;
}
