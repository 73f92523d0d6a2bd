/** Metric, levels, colours, search, steps: what stands above all pictures of stacks. */

import { useRef } from "preact/hooks";
import { visible } from "../../base/value.ts";
import { schema, table as tableOf } from "../../state/view.ts";
import type { MetricInfo } from "../../wire/types.ts";
import { GENERAL } from "./menu.tsx";
import { change, PANEL, settings, stepText, type ColorBy } from "./model.ts";

/** Metrics by what they are about; those that no group names stand at the end. */
const GROUPS: [string, string[]][] = [
  ["CPU", ["cpu", "busy", "dpc", "isr", "dpc-time", "isr-time", "energy"]],
  ["Threads", ["wait", "ready", "run", "readying", "switches", "alpc-wait", "ui-delay"]],
  ["Input and output", ["disk-bytes", "disk-time", "disk-service", "file-bytes", "file-time", "minifilter-time", "network-bytes", "registry-ops", "registry-time"]],
  ["Memory", ["page-faults", "page-fault-bytes", "hard-fault-bytes", "hard-fault-time", "virtual-alloc", "virtual-outstanding", "heap-bytes", "heap-outstanding", "pool-bytes", "pool-outstanding", "handles"]],
];

/** What stacks can stand under; "" is nothing. */
const LEVELS = ["", "process", "thread", "service", "module", "tag", "category", "process,thread", "process,module", "process,tag", "tag,process", "category,process"];

const COLORS: [ColorBy, string][] = [["module", "module"], ["category", "category"], ["tag", "tag"], ["kind", "user or kernel"]];

export const focusSearch = () => document.getElementById("stack-search")?.focus();

export function Bar(props: { found: string; chart?: boolean }) {
  const { metric, by, color, search } = settings();
  const metrics = schema.value?.metrics ?? [];
  const byName = new Map(metrics.map((one) => [one.name, one]));
  const named = new Set(GROUPS.flatMap(([, names]) => names));
  const groups: [string, MetricInfo[]][] = [
    ...GROUPS.map(([title, names]): [string, MetricInfo[]] => [title, names.flatMap((name) => byName.get(name) ?? [])]),
    ["More", metrics.filter((one) => !named.has(one.name))],
  ];
  const chosen = byName.get(metric);
  return (
    <div class="stack-row" data-part="bar">
      {!props.chart && (
        <select class="metric" aria-label="Metric" data-hint={chosen?.manual} value={metric} onChange={(event) => change({ metric: event.currentTarget.value, root: [] })}>
          {!chosen && <option value={metric}>{visible(metric)}</option>}
          {groups
            .filter(([, list]) => list.length > 0)
            .map(([title, list]) => (
              <optgroup key={title} label={title}>
                {list.map((one) => (
                  <option key={one.name} value={one.name} class={one.there ? "" : "empty"} title={one.there ? one.manual : (tableOf(one.table)?.why_empty ?? "not recorded")}>
                    {one.name}: {one.about}
                    {one.there ? "" : " (not recorded)"}
                  </option>
                ))}
              </optgroup>
            ))}
        </select>
      )}
      {!props.chart && (
        <select
          aria-label="Levels above the stacks"
          value={by.join(",")}
          onChange={(event) => change({ by: event.currentTarget.value === "" ? [] : event.currentTarget.value.split(","), root: [] })}
        >
          {[...LEVELS, ...(LEVELS.includes(by.join(",")) ? [] : [by.join(",")])].map((one) => (
            <option key={one} value={one}>
              {one ? `by ${visible(one.split(",").join(", "))}` : "by stack alone"}
            </option>
          ))}
        </select>
      )}
      <select aria-label="Color by" value={color} onChange={(event) => change({ color: event.currentTarget.value as ColorBy })}>
        {COLORS.map(([id, title]) => (
          <option key={id} value={id}>
            color: {title}
          </option>
        ))}
      </select>
      <input
        id="stack-search"
        type="search"
        aria-label="Search functions"
        placeholder="Find function (/)"
        value={search}
        onInput={(event) => change({ search: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            change({ search: "" });
            event.currentTarget.blur();
          }
        }}
      />
      <span class="muted" role="status" data-part="found">{props.found}</span>
    </div>
  );
}

/** The steps taken, each to be taken back. */
export function Steps(props: { tree?: boolean }) {
  const { steps } = settings();
  const list = useRef<HTMLDivElement>(null);
  return (
    <div class="stack-row steps" role="group" aria-label="Steps" data-part="steps" data-panel-of={PANEL} ref={list}>
      {GENERAL.filter((one) => (one.key !== "i" || !props.tree) && (one.key !== "X" || steps.length > 0)).map((one) => (
        <button type="button" class="small" key={one.key} title={`${one.title} (${one.key})`} onClick={one.run}>
          {{ r: "Collapse recursion", j: "Just my code", i: "Invert", X: "Undo step" }[one.key] ?? one.title}
        </button>
      ))}
      {steps.map((step, at) => (
        <span class="crumb filter" key={`${at} ${stepText(step)}`}>
          {at + 1}. {visible(stepText(step))}{" "}
          <button
            type="button"
            class="small"
            aria-label={`Drop the step ${visible(stepText(step))}`}
            onClick={() => {
              change({ steps: steps.filter((_, other) => other !== at), root: [] });
              list.current?.querySelector<HTMLElement>("button")?.focus();
            }}
          >
            ✕
          </button>
        </span>
      ))}
    </div>
  );
}

/** From the whole to the node that is the top. */
export function Trail() {
  const { root } = settings();
  if (root.length === 0) return null;
  return (
    <nav class="stack-row trail" aria-label="Zoomed into" data-part="trail">
      <button type="button" class="small" onClick={() => change({ root: [] })}>
        all
      </button>
      {root.map((label, at) => (
        <span key={at}>
          {" › "}
          <button type="button" class="small" aria-current={at === root.length - 1 ? "location" : undefined} onClick={() => change({ root: root.slice(0, at + 1) })}>
            {visible(label)}
          </button>
        </span>
      ))}
    </nav>
  );
}
