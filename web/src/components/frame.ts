/** What all charts share: title, what it says in words, controls, and the same figures as a table. */

import { h, unique, type Child } from "../lib/dom.ts";

export interface Frame {
  /** Its title. */
  title: string;
  /** What it shows and says, in a sentence or two. */
  summary: Child;
  /** The drawing. */
  graphic: HTMLElement;
  /** The same figures; made when it is first shown. */
  table: () => HTMLElement;
  /** Buttons and lists beside the title. */
  controls?: Child;
  /** Names of colours, below the drawing. */
  legend?: Child;
}

/** A figure with a button that shows the table in place of the drawing. */
export function frame(parts: Frame): HTMLElement {
  const id = unique("chart");
  const holder = h("div", { class: "as-table", hidden: true, id: `${id}-table` });
  const toggle = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-expanded": "false",
      "aria-controls": `${id}-table`,
      onclick: () => {
        const open = holder.hidden;
        if (open) holder.replaceChildren(parts.table());
        holder.hidden = !open;
        parts.graphic.hidden = open;
        toggle.setAttribute("aria-expanded", String(open));
        toggle.textContent = open ? "Show as chart" : "Show as table";
      },
    },
    "Show as table",
  );
  return h(
    "figure",
    { class: "chart", "aria-labelledby": id },
    h("div", { class: "chart-head" }, h("h3", { id }, parts.title), h("div", { class: "controls" }, parts.controls, toggle)),
    h("figcaption", {}, parts.summary),
    parts.graphic,
    parts.legend,
    holder,
  );
}

export interface Choice<T> {
  label: string;
  value: T;
}

/** One of a few, as buttons in a row. */
export function segmented<T>(label: string, choices: Choice<T>[], chosen: T, choose: (value: T) => void): HTMLElement {
  const buttons = choices.map((choice) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(choice.value === chosen),
        onclick: () => {
          buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(choices[at] === choice)));
          choose(choice.value);
        },
      },
      choice.label,
    ),
  );
  return h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}

/** One of many, as a list to open. */
export function picker<T>(label: string, choices: Choice<T>[], choose: (value: T) => void): HTMLElement {
  const select: HTMLSelectElement = h(
    "select",
    {
      "aria-label": label,
      onchange: () => {
        const choice = choices[select.selectedIndex];
        if (choice) choose(choice.value);
      },
    },
    choices.map((choice) => h("option", {}, choice.label)),
  );
  return select;
}
