/**
 * One box for everything: a text finds panels, findings, processes, modules and tables; `>` commands; `:` runs SQL; a time or a span
 * (`1.5s-2s`) goes there.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { visible } from "../base/value.ts";
import { selectHit } from "../state/select.ts";
import { addFilter, back, look, report, schema, set, view, zoomTo } from "../state/view.ts";
import { askRows } from "../wire/api.ts";
import type { Panel } from "./panel.ts";

interface Item {
  kind: string;
  text: string;
  run: () => void;
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9 };

/** `1.5s-2s`, `100ms - 200ms`, `3s`: a range; a moment alone is 1 ms wide. */
export function rangeOf(text: string): [number, number] | null {
  const found = /^\s*([\d.]+)\s*(ns|us|µs|ms|s|min)?\s*(?:(?:-|–|\.\.)\s*([\d.]+)\s*(ns|us|µs|ms|s|min)?)?\s*$/.exec(text);
  if (!found?.[1] || (!found[2] && !found[4])) return null;
  const unit = (name: string | undefined) => UNITS[name ?? ""] ?? 1e9;
  const from = Number(found[1]) * unit(found[2] ?? found[4]);
  const to = found[3] ? Number(found[3]) * unit(found[4] ?? found[2]) : from + 1e6;
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [Math.round(from), Math.round(to)] : null;
}

interface Names {
  processes: [number, string][];
  modules: string[];
}

const names = new Map<number, Promise<Names>>();

/** Processes and modules of a trace, read when somebody first types. */
function namesOf(trace: number): Promise<Names> {
  let found = names.get(trace);
  if (!found) {
    found = Promise.all([
      askRows("figures", { trace, sql: "SELECT upid, name, pid FROM process", limit: 20000 }),
      askRows("figures", { trace, sql: "SELECT DISTINCT module FROM frame WHERE module IS NOT NULL", limit: 20000 }),
    ]).then(([processes, modules]) => ({
      processes: Array.from({ length: processes.count }, (_, row): [number, string] => [processes.num(row, "upid"), `${processes.text(row, "name")} (${processes.text(row, "pid")})`]),
      modules: Array.from({ length: modules.count }, (_, row) => modules.text(row, "module")),
    }));
    names.set(trace, found);
  }
  return found;
}

const MOST = 40;

function items(text: string, panels: Panel[], known: Names | null): Item[] {
  const out: Item[] = [];
  const wanted = text.replace(/^[>:]/, "").trim().toLowerCase();
  const fits = (name: string) => name.toLowerCase().includes(wanted);
  const commands: Item[] = [
    { kind: "command", text: "Show the whole trace", run: () => zoomTo(null) },
    { kind: "command", text: "Undo", run: back },
    { kind: "command", text: "Zoom to the selection", run: () => view.value.selection && zoomTo(view.value.selection) },
    { kind: "command", text: "Drop all filters", run: () => look({ filters: [], finding: null }) },
    { kind: "command", text: "Drop the selection", run: () => look({ selection: null }) },
  ];
  if (text.startsWith(":")) {
    const sql = text.slice(1).trim();
    return [
      {
        kind: "SQL",
        text: sql || "SELECT …",
        run: () => {
          if (sql) set("sql", { text: sql });
          look({ panel: "sql" });
        },
      },
    ];
  }
  const range = rangeOf(text);
  if (range) out.push({ kind: "time", text: `zoom to ${text.trim()}`, run: () => zoomTo(range) });
  for (const panel of panels) {
    if (fits(panel.title) || fits(panel.about)) out.push({ kind: text.startsWith(">") ? "command" : "panel", text: panel.title, run: () => look({ panel: panel.id }) });
  }
  out.push(...commands.filter((one) => fits(one.text)));
  if (text.startsWith(">")) return out;
  for (const finding of report.value?.findings ?? []) {
    if (finding.answer !== "found") continue;
    finding.hits.forEach((hit, at) => {
      if (fits(`${finding.title} ${hit.headline} ${hit.culprit}`)) out.push({ kind: "finding", text: visible(hit.headline || finding.title), run: () => void selectHit(finding.id, at, "overview") });
    });
  }
  if (wanted.length > 1) {
    for (const [upid, name] of known?.processes ?? []) {
      if (fits(name)) out.push({ kind: "process", text: visible(name), run: () => addFilter({ kind: "process", value: upid, label: name }) });
    }
    for (const module of known?.modules ?? []) {
      if (fits(module)) out.push({ kind: "module", text: visible(module), run: () => addFilter({ kind: "module", value: module, label: module }) });
    }
    if (wanted.includes("!")) out.push({ kind: "function", text: visible(text.trim()), run: () => addFilter({ kind: "frame", value: text.trim(), label: text.trim() }) });
    for (const table of schema.value?.tables ?? []) {
      if (fits(table.name)) {
        out.push({
          kind: "table",
          text: `${table.name}: ${table.title}`,
          run: () => {
            set("sql", { text: `SELECT * FROM ${table.name} LIMIT 200` });
            look({ panel: "sql" });
          },
        });
      }
    }
  }
  return out.slice(0, MOST);
}

export function Omnibox(props: { panels: Panel[] }) {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const [known, setKnown] = useState<Names | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const trace = view.value.trace;
  useEffect(
    () =>
      bind("Search", [
        { key: "Ctrl+k", about: "search for anything", run: () => input.current?.focus() },
        {
          key: ">",
          about: "commands",
          run: () => {
            setText(">");
            input.current?.focus();
          },
        },
        {
          key: ":",
          about: "SQL",
          run: () => {
            setText(":");
            input.current?.focus();
          },
        },
      ]),
    [],
  );
  useEffect(() => setKnown(null), [trace]);
  const list = open && text ? items(text, props.panels, known) : [];
  const run = (item: Item | undefined) => {
    if (!item) return;
    item.run();
    setText("");
    setOpen(false);
    input.current?.blur();
    document.getElementById("panel")?.focus();
  };
  return (
    <div class="omnibox">
      <input
        ref={input}
        role="combobox"
        aria-label="Search, > command, : SQL"
        aria-expanded={list.length > 0}
        aria-controls="omnibox-list"
        aria-autocomplete="list"
        aria-activedescendant={list.length > 0 ? `omnibox-${at}` : undefined}
        placeholder="Search, > command, : SQL (Ctrl+K)"
        value={text}
        autocomplete="off"
        onFocus={() => {
          setOpen(true);
          namesOf(trace).then(setKnown, () => undefined);
        }}
        onBlur={() => setTimeout(() => setOpen(false), 150)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          setOpen(true);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(list.length - 1, at + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
          else if (event.key === "Enter") run(list[at]);
          else if (event.key === "Escape") {
            setText("");
            input.current?.blur();
          } else return;
          event.preventDefault();
        }}
      />
      <ul id="omnibox-list" role="listbox" aria-label="Found" hidden={list.length === 0}>
        {list.map((item, number) => (
          <li
            key={`${item.kind} ${item.text} ${number}`}
            id={`omnibox-${number}`}
            role="option"
            aria-selected={number === at}
            onPointerDown={(event) => {
              event.preventDefault();
              run(item);
            }}
          >
            <span class="muted">{item.kind}</span> {item.text}
          </li>
        ))}
      </ul>
    </div>
  );
}
