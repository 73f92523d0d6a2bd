/** The page of a store of many traces. */

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { choose, chosen, startTheme, THEMES } from "../hud/base/theme.ts";
import { count } from "../src/lib/format.ts";
import { Machines, Ranking, Trace, Traces } from "./panes.tsx";
import { go, link, view, type Filter } from "./state.ts";
import { ask, type Choice, type StoreFacts } from "./wire.ts";

/** A changed filter keeps what is ranked and looked at, as far as it is left. */
function filtered(change: Filter): void {
  const { filter, what, name } = view.value;
  const all = Object.entries({ ...filter, ...change }).filter(([, value]) => value);
  go({ what, ...(name ? { name } : {}), filter: Object.fromEntries(all) });
}

function Pick({ label, of, choices }: { label: string; of: "model" | "os"; choices: Choice[] }) {
  if (choices.length < 2) return null;
  return (
    <label>
      {label}{" "}
      <select value={view.value.filter[of] ?? ""} onChange={(event) => filtered({ [of]: event.currentTarget.value })}>
        <option value="">all</option>
        {choices.map((one) => (
          <option value={one.name}>
            {one.name} ({count(one.machines)})
          </option>
        ))}
      </select>
    </label>
  );
}

function Day({ label, of, facts }: { label: string; of: "from" | "to"; facts: StoreFacts }) {
  return (
    <label>
      {label}{" "}
      <input
        type="date"
        min={facts.first_day ?? undefined}
        max={facts.last_day ?? undefined}
        value={view.value.filter[of] ?? ""}
        onChange={(event) => filtered({ [of]: event.currentTarget.value })}
      />
    </label>
  );
}

function Filters({ facts }: { facts: StoreFacts }) {
  const { filter, what, name } = view.value;
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Pick label="Model" of="model" choices={facts.models} />
      <Pick label="Windows" of="os" choices={facts.systems} />
      {facts.first_day !== facts.last_day ? (
        <>
          <Day label="From" of="from" facts={facts} />
          <Day label="To" of="to" facts={facts} />
        </>
      ) : null}
      {filter.version ? (
        <button type="button" class="small" aria-pressed="true" onClick={() => filtered({ file: "", version: "" })} title="Take this filter back">
          {filter.file} {filter.version} ✕
        </button>
      ) : null}
      {Object.keys(filter).length > 0 ? <a href={link({ what, ...(name ? { name } : {}), filter: {} })}>All traces</a> : null}
    </form>
  );
}

function Page() {
  const [facts, put] = useState<StoreFacts | null>(null);
  const [fault, say] = useState("");
  useEffect(() => {
    ask("facts", {}).then(put, (error: Error) => say(error.message));
  }, []);
  const { name, machine, trace } = view.value;
  useEffect(() => {
    document.title = [trace ? "Trace" : (name ?? "Ranking"), "etwhy"].join(" · ");
  }, [name, trace]);
  return (
    <>
      <a class="skip" href={location.hash} onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}>
        To the ranking
      </a>
      <header>
        <h1>{facts ? `${count(facts.traces)} traces of ${count(facts.machines)} machines` : "etwhy"}</h1>
        <span class="faint cut" title={facts?.store}>
          {facts?.store}
        </span>
        <label>
          Theme{" "}
          <select value={chosen.value} onChange={(event) => choose(THEMES.find((one) => one === event.currentTarget.value) ?? "auto")}>
            {THEMES.map((one) => (
              <option value={one}>{one}</option>
            ))}
          </select>
        </label>
        {facts ? <Filters facts={facts} /> : null}
      </header>
      {fault ? (
        <p class="fault" role="alert">
          {fault}
        </p>
      ) : null}
      <main tabIndex={-1}>
        <Ranking />
        {name ? <Machines /> : null}
        {machine ? <Traces /> : null}
        {trace ? <Trace /> : null}
      </main>
    </>
  );
}

startTheme();
render(<Page />, document.getElementById("app") as HTMLElement);
