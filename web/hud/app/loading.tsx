/** What is seen of a trace before it is there, and when it is not: how far its reading is, its verdict, why it failed and what to do. */

import { useState } from "preact/hooks";
import { visible } from "../base/value.ts";
import { Fault } from "../parts/box.tsx";
import { Findings } from "../parts/findings.tsx";
import { shortened } from "../state/finding.ts";
import { missing, openMissing, shownTrace } from "../state/opened.ts";
import { note } from "../state/notes.ts";
import { report } from "../state/view.ts";
import { ask } from "../wire/api.ts";
import type { TraceInfo } from "../wire/types.ts";

/** What the program calls its work, for people; the name of the trace follows. */
const WORDS: Record<string, string> = {
  input: "Opening",
  unpacking: "Unpacking",
  fetching: "Fetching symbols for",
  reading: "Reading",
  extract: "Reading",
  "derived tables": "Making tables of",
  findings: "Looking for causes in",
};

const MB = (bytes: number) => `${Math.round(bytes / 1e6).toLocaleString("en")} MB`;

function Progress({ one }: { one: TraceInfo }) {
  const share = one.total > 0 ? Math.min(1, one.done / one.total) : null;
  const name = visible(one.name);
  const what = one.stage === "waiting" ? `${name} is next, after other traces` : `${WORDS[one.doing] ?? "Opening"} ${name}`;
  return (
    <>
      <p role="status" aria-live="polite">
        {what}
        {share !== null && ` ${Math.floor(share * 100)} % (${MB(one.done)} of ${MB(one.total)})`} …
      </p>
      <progress max={1} {...(share === null ? {} : { value: share })} aria-label={what} />
    </>
  );
}

/** The verdict, as soon as it stands. */
function Early() {
  const verdict = report.value;
  if (!verdict) return null;
  return (
    <div class="overview early">
      <section class="answer" aria-label="Verdict">
        <h1 title={visible(verdict.sentence)}>{visible(shortened(verdict.sentence))}</h1>
        <p>The verdict is ready. The tables of the panels are being made.</p>
      </section>
      <Findings data={verdict} />
    </div>
  );
}

export function Loading() {
  const [error, setError] = useState<string | null>(null);
  const one = shownTrace.value;
  if (!one) return <p>No trace is open.</p>;
  const gone = ["failed", "ended", "closed"].includes(one.stage);
  if (!gone) {
    return (
      <>
        <div class="about loading">
          <Progress one={one} />
        </div>
        <Early />
      </>
    );
  }
  const again = () => {
    setError(null);
    ask("open", { trace: one.trace }).catch((fault: unknown) => setError(fault instanceof Error ? fault.message : String(fault)));
  };
  const said = { failed: "could not be read", ended: "has to be read again", closed: "was closed" }[one.stage as "failed" | "ended" | "closed"];
  return (
    <div class="loading" role="alert">
      <h2>
        {visible(one.name)} {said}
      </h2>
      {one.error && <p class="fault">{visible(one.error)}</p>}
      <p>
        <button type="button" onClick={again}>
          Read it again
        </button>{" "}
        Other traces are not affected.
      </p>
      <Fault error={error} />
    </div>
  );
}

/** A link shows a trace that is not open. */
export function Offer() {
  const [busy, setBusy] = useState(false);
  const wanted = missing.value;
  if (!wanted?.path) return null;
  const open = () => {
    setBusy(true);
    openMissing()
      .then((said) => said && note(said), (error: unknown) => note(error instanceof Error ? error.message : String(error)))
      .finally(() => setBusy(false));
  };
  return (
    <div class="notes" role="alert">
      <p>
        {visible(wanted.name)} is in a folder of this server.{" "}
        <button type="button" class="small" disabled={busy} onClick={open}>
          Open it and follow the link
        </button>
      </p>
      <button type="button" class="small" onClick={() => (missing.value = null)}>
        Dismiss
      </button>
    </div>
  );
}
