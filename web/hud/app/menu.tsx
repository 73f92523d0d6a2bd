/** What one does with the whole: share, save, open, theme, help. */

import { useEffect, useRef, useState } from "preact/hooks";
import { chooseDensity, DENSITIES, density } from "../base/density.ts";
import { all, bind } from "../base/keys.ts";
import { choose, chosen, THEMES } from "../base/theme.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { useOverPage } from "../parts/over_page.ts";
import { session } from "../state/session.ts";
import { writing } from "../state/writing.ts";
import { dialog, saveReport, share } from "./commands.ts";
import { toggleInspector } from "./inspector.tsx";
import { Open } from "./open.tsx";

function Help(props: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={props.onClose}>
      <div class="keys">
        {all().map(([heading, keys]) => (
          <section key={heading}>
            <h3>{heading}</h3>
            <dl>
              {keys.map((key) => (
                <div key={key.key}>
                  <dt>
                    <kbd>{key.key === " " ? "Space" : key.key}</kbd>
                  </dt>
                  <dd>{key.about}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>In tables</h3>
          <dl>
            {[
              ["Arrows", "move between cells; Right and Left open and close rows of trees"],
              ["Home, End, Page Up, Page Down", "move far; with Ctrl to the first and last row"],
              ["Enter", "what a double-click does; in the header it sorts"],
              ["Shift+Up, Shift+Down", "select rows: their sum is shown below, Ctrl+C copies them as numbers; Escape drops them"],
              ["Ctrl+C", "copy the cell"],
              ["Shift+F10 in the header", "menu of the column: sort, unit, aggregate, copy, hide"],
            ].map(([key, about]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{about}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}

/** How the page looks, and what is done more rarely. */
function Settings(props: { show: (dialog: "open" | "help") => void; close: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  useOverPage(element, "button, select", props.close, ".settings-button");
  return (
    <div
      class="settings"
      role="dialog"
      aria-label="More"
      ref={element}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        props.close();
      }}
    >
      <button type="button" onClick={() => { props.close(); saveReport(); }} title="Save the verdict as one HTML file that needs no server">
        Save report
      </button>
      <button type="button" onClick={() => { props.close(); writing.value = "pin"; }} title="The saved report shows this view too, with what you write about it">
        Pin this view <kbd>R</kbd>
      </button>
      {!session.value?.readonly && (
        <button type="button" onClick={() => props.show("open")}>
          Open another trace
        </button>
      )}
      <button type="button" onClick={() => { props.close(); writing.value = "note"; }}>
        Notes <kbd>n</kbd>
      </button>
      <button type="button" onClick={() => { props.close(); writing.value = "view"; }}>
        Saved views
      </button>
      <button type="button" onClick={() => props.show("help")}>
        Keys <kbd>?</kbd>
      </button>
      <label>
        Theme
        <select value={chosen.value} onChange={(event) => choose(event.currentTarget.value as (typeof THEMES)[number])}>
          {THEMES.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <div>
        Rows
        <div class="segmented" role="group" aria-label="Density">
          {DENSITIES.map((name) => (
            <button type="button" key={name} aria-pressed={density.value === name} onClick={() => chooseDensity(name)}>
              {name}
            </button>
          ))}
        </div>
      </div>
    </div>
  );
}

export function Menu() {
  const [more, setMore] = useState(false);
  useEffect(
    () =>
      bind("Global", [
        { key: "?", about: "this list", run: () => void (dialog.value = "help") },
        { key: "Y", about: "copy a link to this view", run: share },
        { key: "R", about: "pin this view to the report", run: () => void (writing.value = "pin") },
      ]),
    [],
  );
  const show = (name: "open" | "help") => {
    setMore(false);
    dialog.value = name;
  };
  return (
    <>
      <button type="button" onClick={share} aria-label="Share" title="Copy a link that shows this view: range, filters, panel, settings (Y)">
        <Icon name="share" size={14} />
        <span class="label">Share</span>
      </button>
      <button type="button" class="icon-button wide-only" aria-label="Inspector" title="Inspector (i)" onClick={toggleInspector}>
        <Icon name="inspector" size={16} />
      </button>
      <button type="button" class="icon-button settings-button" aria-label="More" aria-expanded={more} title="Save report, open, keys, theme, density" onClick={() => setMore(!more)}>
        <Icon name="settings" size={16} />
      </button>
      {more && <Settings show={show} close={() => setMore(false)} />}
      {dialog.value === "open" && <Open onClose={() => void (dialog.value = null)} />}
      {dialog.value === "help" && <Help onClose={() => void (dialog.value = null)} />}
    </>
  );
}
