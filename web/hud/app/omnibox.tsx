/**
 * One box for everything: a text finds processes, threads, functions, modules, files, registry keys, providers, findings, panels, settings and tables,
 * the exact name first; `>` commands; `:` runs SQL; a time or a span (`1.5s-2s`) goes there.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { visible } from "../base/value.ts";
import { namesOf, pathsLike, type Names, type Path } from "../state/names.ts";
import { foundIn, phrase } from "../state/finding.ts";
import { addFilter, look, report, schema, set, view, zoomTo } from "../state/view.ts";
import { Icon } from "../parts/icons.tsx";
import { show } from "../parts/findings.tsx";
import { FRESH } from "../parts/pivot/model.ts";
import { commands } from "./commands.ts";
import type { Panel } from "./panel.ts";

interface Item {
  kind: string;
  text: string;
  /** Quieter, behind it. */
  more?: string;
  run: () => void;
  /** How well it fits: less is better. */
  rank?: number;
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

const MOST = 40;
/** What stands first among equals. */
const KINDS = ["time", "process", "function", "module", "file", "registry key", "provider", "thread", "finding", "panel", "command", "table"];

/** How well a name fits: itself, its beginning, the beginning of a word, anywhere. */
export function fit(name: string, wanted: string): number | null {
  const text = name.toLowerCase();
  const at = text.indexOf(wanted);
  if (at < 0) return null;
  const bare = text.replace(/ \(\d+\)$/, "").replace(/^.*[!\\]/, "");
  if (text === wanted || bare === wanted || bare.replace(/\.[a-z]+$/, "") === wanted) return 0;
  if (at === 0 || bare.startsWith(wanted)) return 1;
  return /[a-z0-9]/.test(text[at - 1] ?? " ") ? 3 : 2;
}

function items(text: string, panels: Panel[], known: Names | null, paths: Path[]): Item[] {
  const wanted = text.replace(/^[>:]/, "").trim().toLowerCase();
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
  const out: Item[] = [];
  const add = (item: Item, name = item.text) => {
    const rank = fit(name, wanted);
    if (rank !== null) out.push({ ...item, rank: rank * 100 + Math.max(0, KINDS.indexOf(item.kind)) + Math.min(0.9, name.length / 200) });
  };
  for (const one of commands()) add({ kind: "command", text: one.text, ...(one.key ? { more: one.key } : {}), run: one.run });
  for (const panel of panels) {
    const fits = fit(panel.title, wanted) !== null;
    add({ kind: text.startsWith(">") ? "command" : "panel", text: panel.title, more: panel.about, run: () => look({ panel: panel.id }) }, fits ? panel.title : panel.about);
  }
  const done = () => out.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)).slice(0, MOST);
  if (text.startsWith(">")) return done();
  const range = rangeOf(text);
  if (range) out.push({ kind: "time", text: `zoom to ${text.trim()}`, rank: -1, run: () => zoomTo(range) });
  const data = report.value;
  for (const one of data ? foundIn(data) : []) {
    add({ kind: "finding", text: `${one.hit.culprit}: ${phrase(one)}`, run: () => { look({ panel: "overview" }); show(one.id); } }, `${one.finding.id} ${one.hit.culprit} ${one.finding.title} ${one.hit.headline}`);
  }
  if (wanted.length > 1) {
    for (const [upid, name] of known?.processes ?? []) add({ kind: "process", text: name, more: "filter", run: () => addFilter({ kind: "process", value: upid, label: name }) }, name);
    for (const [utid, tid, name, process] of known?.threads ?? []) {
      const label = `${process} ${tid}${name ? ` ${name}` : ""}`;
      add({ kind: "thread", text: label, more: "filter", run: () => addFilter({ kind: "thread", value: utid, label }) }, `${name} ${tid}`);
    }
    for (const name of known?.functions ?? []) {
      add({ kind: "function", text: name, more: "butterfly", run: () => { set("stacks", { tab: "butterfly", about: name }); look({ panel: "stacks" }); } }, name);
    }
    for (const module of known?.modules ?? []) add({ kind: "module", text: module, more: "filter", run: () => addFilter({ kind: "module", value: module, label: module }) }, module);
    for (const { kind, path } of paths) {
      const [panel, preset] = kind === "file" ? ["files", "By path"] : ["registry", "By key"];
      add({ kind, text: path, more: panel, run: () => { set(panel, { ...FRESH, preset, search: path }); look({ panel }); } });
    }
    for (const name of known?.providers ?? []) add({ kind: "provider", text: name, more: "events", run: () => { set("events", { preset: "Events by provider and name", search: name }); look({ panel: "events" }); } }, name);
    for (const table of schema.value?.tables ?? []) {
      add(
        {
          kind: "table",
          text: table.name,
          more: table.title,
          run: () => {
            set("sql", { text: `SELECT * FROM ${table.name} LIMIT 200` });
            look({ panel: "sql" });
          },
        },
        table.name,
      );
    }
    if (wanted.includes("!")) out.push({ kind: "function", text: text.trim(), more: "filter stacks", rank: 900, run: () => addFilter({ kind: "frame", value: text.trim(), label: text.trim() }) });
  }
  return done();
}

export function Omnibox(props: { panels: Panel[] }) {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const [known, setKnown] = useState<Names | null>(null);
  const [paths, setPaths] = useState<Path[]>([]);
  const input = useRef<HTMLInputElement>(null);
  const closing = useRef<ReturnType<typeof setTimeout>>(undefined);
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
  useEffect(() => {
    setPaths([]);
    if (text.trim().length < 3 || /^[>:]/.test(text)) return;
    const abort = new AbortController();
    const timer = setTimeout(() => void pathsLike(trace, text.trim(), abort.signal).then((found) => !abort.signal.aborted && setPaths(found)), 120);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, trace]);
  const list = open && text ? items(text, props.panels, known, paths) : [];
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
      <Icon name="search" size={14} />
      <input
        ref={input}
        role="combobox"
        aria-label="Search, > command, : SQL"
        aria-expanded={list.length > 0}
        aria-controls="omnibox-list"
        aria-autocomplete="list"
        aria-activedescendant={list.length > 0 ? `omnibox-${at}` : undefined}
        placeholder="Find a process, function, file, time or command"
        value={text}
        autocomplete="off"
        onFocus={() => {
          // Who comes back at once wants the list, too.
          clearTimeout(closing.current);
          setOpen(true);
          namesOf(trace).then(setKnown, () => undefined);
        }}
        onBlur={() => void (closing.current = setTimeout(() => setOpen(false), 150))}
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
      {!text && <kbd aria-hidden="true">Ctrl K</kbd>}
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
            <span class="kind">{item.kind}</span>
            <span class="text">{visible(item.text)}</span>
            {item.more && <span class="more">{item.more}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
