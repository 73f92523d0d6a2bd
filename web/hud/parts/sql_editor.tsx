/** An editor for SQL: completion of tables, columns, functions and keywords, with what they mean. Ctrl+Enter runs. */

import { useMemo, useRef, useState } from "preact/hooks";
import { schema } from "../state/view.ts";

interface Word {
  word: string;
  kind: string;
  about: string;
}

const KEYWORDS = "SELECT FROM WHERE GROUP BY ORDER BY LIMIT JOIN LEFT JOIN ON AS AND OR NOT NULL IS IN LIKE BETWEEN CASE WHEN THEN ELSE END WITH HAVING DISTINCT UNION ALL DESC ASC OVER PARTITION BY count( sum( avg( min( max( coalesce( round( lower(".split(" ");

/** The word before the caret, and the table whose column is meant if a dot stands before it. */
export function before(text: string, caret: number): { word: string; start: number; owner: string | null } {
  const found = /([A-Za-z_][\w]*)?$/.exec(text.slice(0, caret));
  const word = found?.[0] ?? "";
  const start = caret - word.length;
  const owner = /([A-Za-z_]\w*)\.$/.exec(text.slice(0, start));
  return { word, start, owner: owner?.[1] ?? null };
}

/** Tables that a query names, by alias. */
export function named(text: string): Map<string, string> {
  const out = new Map<string, string>();
  for (const found of text.matchAll(/\b(?:from|join)\s+"?([A-Za-z_]\w*)"?(?:\s+(?:as\s+)?(?!on\b|where\b|group\b|order\b|join\b|left\b|limit\b|cross\b)([A-Za-z_]\w*))?/gi)) {
    const table = (found[1] ?? "").toLowerCase();
    out.set(table, table);
    if (found[2]) out.set(found[2].toLowerCase(), table);
  }
  return out;
}

export function SqlEditor(props: { text: string; onInput: (text: string) => void; onRun: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [list, setList] = useState<Word[]>([]);
  const [at, setAt] = useState(0);
  const known = schema.value;

  const all = useMemo(() => {
    if (!known) return { global: [] as Word[], columns: new Map<string, Word[]>() };
    const columns = new Map<string, Word[]>();
    for (const table of known.tables) {
      columns.set(table.name, table.columns.map((column) => ({ word: column.name, kind: column.unit || column.type, about: `${table.name}: ${column.doc}` })));
    }
    for (const view of known.views) columns.set(view.name, view.columns.map(([word, about]) => ({ word, kind: "column", about: `${view.name}: ${about}` })));
    const global: Word[] = [
      ...known.tables.map((table) => ({ word: table.name, kind: table.rows > 0 ? "table" : "empty table", about: table.title })),
      ...known.views.map((view) => ({ word: view.name, kind: "view", about: view.title })),
      ...known.functions.map((one) => ({ word: `${one.name}(`, kind: "table function", about: `${one.name}(${one.args.join(", ")}): ${one.about}` })),
      ...known.scalars.map((one) => ({ word: one.usage.replace(/\(.*/, "("), kind: "function", about: `${one.usage}: ${one.about}` })),
      ...KEYWORDS.map((word) => ({ word, kind: "SQL", about: "" })),
    ];
    return { global, columns };
  }, [known]);

  const complete = (force: boolean) => {
    const element = area.current;
    if (!element) return;
    const { word, owner } = before(element.value, element.selectionStart);
    const tables = named(element.value);
    const fits = (one: Word) => one.word.toLowerCase().startsWith(word.toLowerCase()) && one.word.toLowerCase() !== word.toLowerCase();
    let found: Word[] = [];
    if (owner) found = all.columns.get(tables.get(owner.toLowerCase()) ?? owner.toLowerCase()) ?? [];
    else if (word || force) found = [...new Set(tables.values())].flatMap((table) => all.columns.get(table) ?? []).concat(all.global);
    const seen = new Set<string>();
    setList(found.filter((one) => fits(one) && !seen.has(one.word) && seen.add(one.word)).slice(0, 30));
    setAt(0);
  };

  const take = (one: Word | undefined) => {
    const element = area.current;
    if (!element || !one) return;
    const { start } = before(element.value, element.selectionStart);
    const text = element.value.slice(0, start) + one.word + element.value.slice(element.selectionStart);
    element.value = text;
    element.setSelectionRange(start + one.word.length, start + one.word.length);
    setList([]);
    props.onInput(text);
  };

  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      setList([]);
      props.onRun();
    } else if (event.key === " " && event.ctrlKey) complete(true);
    else if (list.length > 0 && event.key === "ArrowDown") setAt(Math.min(list.length - 1, at + 1));
    else if (list.length > 0 && event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (list.length > 0 && event.key === "Escape") setList([]);
    // Tab takes a word only while words are offered: otherwise it leaves the editor, as everywhere.
    else if (list.length > 0 && (event.key === "Tab" || event.key === "Enter")) take(list[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="sql-editor">
      <textarea
        ref={area}
        aria-label="Query"
        aria-describedby="sql-keys"
        aria-controls="sql-words"
        aria-autocomplete="list"
        aria-activedescendant={list.length > 0 ? `sql-word-${at}` : undefined}
        spellcheck={false}
        value={props.text}
        onInput={(event) => {
          props.onInput(event.currentTarget.value);
          complete(false);
        }}
        onKeyDown={onKey}
        onBlur={() => setTimeout(() => setList([]), 150)}
      />
      <ul id="sql-words" role="listbox" aria-label="Completions" hidden={list.length === 0}>
        {list.map((one, number) => (
          <li
            key={one.word}
            id={`sql-word-${number}`}
            role="option"
            aria-selected={number === at}
            ref={(element) => {
              if (element && number === at) element.scrollIntoView({ block: "nearest" });
            }}
            onPointerDown={(event) => {
              event.preventDefault();
              take(one);
            }}
          >
            <code>{one.word}</code> <span class="muted">{one.kind}</span> <span class="about">{one.about}</span>
          </li>
        ))}
      </ul>
      <p id="sql-keys" class="about">
        Ctrl+Enter runs, Ctrl+Space offers words. <code>{"{from}"}</code> and <code>{"{to}"}</code> stand for the range that is selected, in nanoseconds.
      </p>
    </div>
  );
}
