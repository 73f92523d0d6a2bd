/** What can be done with a function or node: menu and keys. */

import { useEffect, useRef } from "preact/hooks";
import { visible } from "../../base/value.ts";
import { addFilter } from "../../state/view.ts";
import { copy } from "../box.tsx";
import { giveBack, useOverPage } from "../over_page.ts";
import { change, isCode, pointed, settings, takeStep, type Pointed } from "./model.ts";

export interface Action {
  key: string;
  title: string;
  run: () => void;
}

/** What can be done with what is pointed at. */
export function actions(at: Pointed): Action[] {
  const { path, inverted, label, module } = at;
  const code = isCode(at.kind);
  const list: Action[] = [];
  const add = (key: string, title: string, run: () => void) => list.push({ key, title, run });
  if (path.length > 0) {
    add("Enter", "Zoom into this", () => change({ root: path }));
    add("F", "Focus on this subtree", () => takeStep({ op: "subtree", path, inverted }));
  }
  if (code) {
    add("f", "Focus on this function", () => takeStep({ op: "focus", function: label }));
    add("o", "Only stacks with this function", () => takeStep({ op: "with", function: label }));
    add("m", "Merge function into its callers", () => takeStep({ op: "merge", function: label }));
    add("d", "Drop stacks with this function", () => takeStep({ op: "drop", function: label }));
    add("c", "Collapse what it calls (end stacks here)", () => takeStep({ op: "trim_below", function: label }));
    add("u", "Leave out its callers (begin stacks here)", () => takeStep({ op: "trim_above", function: label }));
    if (module) {
      add("C", `Collapse module ${module}`, () => takeStep({ op: "collapse", module }));
      add("M", `Merge module ${module} into its callers`, () => takeStep({ op: "merge_module", module }));
      add("D", `Drop stacks with module ${module}`, () => takeStep({ op: "drop_module", module }));
    }
    add("b", "Butterfly: callers and callees", () => change({ tab: "butterfly", about: label }));
    if (!label.endsWith("!?")) add("p", "Filter all panels by this function", () => addFilter({ kind: "frame", value: label, label }));
    if (module) add("P", "Filter all panels by this module", () => addFilter({ kind: "module", value: module, label: module }));
  }
  add("n", "Copy name", () => void copy(label, "name"));
  add("s", "Copy stack", () => void copy(path.join("\n"), "stack"));
  return list;
}

/** Steps that need nothing pointed at. */
export const GENERAL: Action[] = [
  { key: "r", title: "Collapse recursion", run: () => takeStep({ op: "recursion" }) },
  { key: "j", title: "Hide code of Windows (just my code)", run: () => takeStep({ op: "mine" }) },
  { key: "i", title: "Invert", run: () => change({ inverted: !settings().inverted, root: [] }) },
  { key: "X", title: "Take the last step back", run: () => change({ steps: settings().steps.slice(0, -1), root: [] }) },
];

/** Keys of steps, for `bind`. */
export const KEYS: [string, string][] = [
  ["F", "focus on subtree"],
  ["f", "focus on function"],
  ["o", "only stacks with the function"],
  ["m", "merge function into its callers"],
  ["M", "merge module"],
  ["d", "drop stacks with function"],
  ["D", "drop stacks with module"],
  ["c", "collapse what the function calls"],
  ["u", "begin stacks at the function"],
  ["C", "collapse module"],
  ["b", "butterfly of the function"],
  ["p", "filter all panels by the function"],
  ["P", "filter all panels by the module"],
];

export function act(key: string): void {
  const at = pointed.value;
  if (at) actions(at).find((one) => one.key === key)?.run();
}

export function Menu(props: { at: Pointed; x: number; y: number; more: Action[]; onClose: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  const list = [...actions(props.at), ...props.more];
  const before = useOverPage(element, "button", props.onClose);
  useEffect(() => () => giveBack(before), []);
  const move = (event: KeyboardEvent) => {
    const all = [...(element.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape" || event.key === "Tab") props.onClose();
    else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
    else if (event.key === "Home") all[0]?.focus();
    else if (event.key === "End") all[all.length - 1]?.focus();
    else {
      const found = list.find((one) => one.key === event.key && one.key.length === 1);
      if (!found) return;
      props.onClose();
      found.run();
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const height = 24 * list.length + 40;
  return (
    <div
      class="stack-menu"
      ref={element}
      role="menu"
      aria-label={visible(props.at.label)}
      data-part="menu"
      style={{ left: `${Math.max(4, Math.min(props.x, innerWidth - 330))}px`, top: `${Math.max(4, Math.min(props.y, innerHeight - height))}px` }}
      onKeyDown={move}
    >
      <p class="name" role="presentation">{visible(props.at.label)}</p>
      {list.map((one) => (
        <button
          type="button"
          role="menuitem"
          key={one.title}
          onClick={() => {
            props.onClose();
            one.run();
          }}
        >
          <span>{visible(one.title)}</span>
          {one.key && <kbd aria-hidden="true">{one.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
