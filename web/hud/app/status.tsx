/** The line at the bottom: how good the trace is, and what colours mean. */

import { bytes, duration, percent } from "../../src/lib/format.ts";
import { counted, visible } from "../base/value.ts";
import { look, wholeReport } from "../state/view.ts";

const COLORS: [string, string][] = [
  ["--user", "user"],
  ["--kernel", "kernel"],
  ["--dpc", "DPC"],
  ["--isr", "ISR"],
  ["--ready", "ready"],
  ["--wait", "waiting"],
];

export function Status() {
  const quality = wholeReport.value?.quality;
  if (!quality) return <footer class="status" aria-label="Trace" />;
  const lost = quality.events_lost + quality.buffers_lost;
  const sampled = quality.sample_interval_ns !== null;
  return (
    <footer class="status" aria-label="Trace">
      <span>
        <i class={lost > 0 ? "ok bad" : "ok"} aria-hidden="true" />
        {counted(quality.events, "event")}, {lost > 0 ? `${counted(quality.events_lost, "event")} and ${counted(quality.buffers_lost, "buffer")} lost` : "0 lost"}
      </span>
      {sampled && (
        <span>
          Samples every {duration(quality.sample_interval_ns ?? 0)}
          {quality.stacks_percent !== null && `, ${percent(quality.stacks_percent / 100)} with stack`}
          {quality.named_percent !== null && `, ${percent(quality.named_percent / 100)} named`}
        </span>
      )}
      <span>
        {visible(quality.os)}, {counted(quality.cpus, "processor")}
        {quality.memory_bytes !== null && `, ${bytes(quality.memory_bytes)}`}
      </span>
      {quality.ledger.length > 0 && (
        <button type="button" class="small" onClick={() => look({ panel: "ledger" })}>
          {counted(quality.ledger.length, "kind of anomaly", "kinds of anomalies")}
        </button>
      )}
      <span class="legend">
        {COLORS.map(([color, name]) => (
          <span key={name}>
            <i class="swatch" style={{ backgroundColor: `var(${color})` }} aria-hidden="true" />
            {name}
          </span>
        ))}
        <span>
          <i class="swatch hatched" aria-hidden="true" />
          security product
        </span>
      </span>
    </footer>
  );
}
