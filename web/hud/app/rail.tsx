/** Where to go: the panels that matter for this trace as icons, all of them in a list that can be searched. */

import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { whyEmpty } from "../parts/box.tsx";
import { Command } from "../parts/command.tsx";
import { Icon } from "../parts/icons.tsx";
import { useOverPage } from "../parts/over_page.ts";
import { WHERE } from "../state/select.ts";
import { look, report, schema, view } from "../state/view.ts";
import { DIGITS, GROUPS, groups, ORDER } from "./order.ts";
import type { Panel } from "./panel.ts";

/** What stands in the rail, with shorter words. */
const SHORT: [string, string, string][] = [
  ["overview", "Overview", "overview"],
  ["stacks", "Stacks", "stacks"],
  ["precise", "CPU", "cpu"],
  ["interrupts", "DPC/ISR", "interrupts"],
  ["threads", "Threads", "threads"],
  ["files", "Files", "files"],
  ["disk", "Disk", "disk"],
  ["network", "Network", "network"],
  ["memory", "Memory", "memory"],
  ["clr", ".NET", "clr"],
  ["events", "Events", "events"],
  ["tables", "Tables", "tables"],
  ["sql", "SQL", "sql"],
];

/** Others that stand there while they are shown, where the first word of their title says something else or does not fit. */
const ALSO: Record<string, string | undefined> = { syscalls: "Syscalls", loggers: "Sessions", minifilter: "Filters" };

/** The list of all panels is open. */
export const listed = signal(false);

/** How bad the findings of each panel are. */
function marked(): Map<string, string> {
  const out = new Map<string, string>();
  for (const one of report.value?.findings ?? []) {
    if (one.answer !== "found" || (one.severity !== "critical" && one.severity !== "warning")) continue;
    const panel = WHERE[one.topic]?.find((id) => id !== "stacks" && id !== "precise") ?? WHERE[one.topic]?.[0];
    if (panel && out.get(panel) !== "critical") out.set(panel, one.severity);
  }
  return out;
}

/** Shows a panel, or puts it beside the one that is shown. */
function go(id: string, beside: boolean): void {
  const { panel } = view.value;
  if (beside && panel !== "overview" && id !== "overview" && id !== panel) look({ beside: id });
  else look({ panel: id, ...(view.value.beside === id ? { beside: null } : {}) });
}

const isEmpty = (panel: Panel) => schema.value !== null && whyEmpty(panel.tables) !== null;

function List() {
  const [text, setText] = useState("");
  const element = useRef<HTMLDivElement>(null);
  useOverPage(element, "input", () => (listed.value = false), ".all, .menu-button");
  const wanted = text.trim().toLowerCase();
  const fits = (panel: Panel) => `${panel.title} ${panel.about}`.toLowerCase().includes(wanted);
  const empty = ORDER.filter((panel) => isEmpty(panel) && fits(panel));
  const choose = (panel: Panel, beside = false) => {
    listed.value = false;
    go(panel.id, beside);
  };
  return (
    <div
      class="flyout"
      ref={element}
      role="dialog"
      aria-label="All panels"
      onKeyDown={(event) => {
        const rows = [...(element.current?.querySelectorAll<HTMLButtonElement>("li button.go") ?? [])];
        const at = rows.indexOf(document.activeElement as HTMLButtonElement);
        if (event.key === "Escape") listed.value = false;
        else if (event.key === "ArrowDown") rows[Math.min(rows.length - 1, at + 1)]?.focus();
        else if (event.key === "ArrowUp") rows[Math.max(0, at - 1)]?.focus();
        else if (event.key === "Enter" && at < 0) rows[0]?.click();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <input type="search" aria-label="Find a panel" placeholder="Find a panel" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="list">
        {groups.map(({ group, panels }) => {
          const shown = panels.filter((panel) => !isEmpty(panel) && fits(panel));
          return (
            shown.length > 0 && (
              <div key={group}>
                {GROUPS[group] && <h2>{GROUPS[group]}</h2>}
                <ul>
                  {shown.map((panel) => (
                    <li key={panel.id}>
                      <button type="button" class="go" title={`${panel.about}\nWith Shift: beside the panel that is shown.`} aria-current={view.value.panel === panel.id ? "page" : undefined} onClick={(event) => choose(panel, event.shiftKey)}>
                        {panel.title}
                      </button>
                    </li>
                  ))}
                </ul>
              </div>
            )
          );
        })}
        {empty.length > 0 && (
          <details open={wanted !== ""}>
            <summary>Not recorded ({empty.length})</summary>
            <ul>
              {empty.map((panel) => (
                <li key={panel.id}>
                  <button type="button" class="go" title={panel.about} onClick={() => choose(panel)}>
                    {panel.title}
                  </button>
                  <Command text={whyEmpty(panel.tables)?.record ?? ""} />
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </div>
  );
}

export function Rail() {
  const marks = marked();
  const now = view.value.panel;
  const shown = SHORT.filter(([id]) => {
    const panel = ORDER.find((one) => one.id === id);
    return panel && (!isEmpty(panel) || id === now);
  });
  const here = ORDER.find((panel) => panel.id === now);
  const others = here && !SHORT.some(([id]) => id === now) ? [here] : [];
  return (
    <>
      <nav class="rail" aria-label="Panels">
        <ul>
          {[...shown, ...others.map((panel): [string, string, string] => [panel.id, ALSO[panel.id] ?? panel.title.split(/[ ,]/)[0] ?? panel.title, panel.id])].map(([id, title, icon]) => (
            <li key={id}>
              <button type="button" aria-current={now === id ? "page" : undefined} title={`${ORDER.find((panel) => panel.id === id)?.about ?? ""}${DIGITS.includes(id) ? ` (${DIGITS.indexOf(id) + 1})` : ""}`} aria-keyshortcuts={DIGITS.includes(id) ? String(DIGITS.indexOf(id) + 1) : undefined} onClick={(event) => go(id, event.shiftKey)}>
                <Icon name={icon} />
                <span class="cut" style={{ maxWidth: "54px" }}>
                  {title}
                </span>
                {marks.has(id) && <span class={`dot ${marks.get(id)}`} aria-hidden="true" />}
              </button>
            </li>
          ))}
        </ul>
        <button type="button" class="all" aria-expanded={listed.value} title="All panels, and what this trace has nothing for" onClick={() => (listed.value = !listed.value)}>
          <Icon name="more" />
          All
        </button>
      </nav>
      {listed.value && <List />}
    </>
  );
}
