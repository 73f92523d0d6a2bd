/** What stands above the time axis: what colours mean, and how it is looked at. */

import { isGuard } from "../../base/colors.ts";
import { amount, visible } from "../../base/value.ts";
import { set, view } from "../../state/view.ts";
import { Sql } from "../box.tsx";
import type { Row, Settings } from "./layout.ts";
import type { Lanes } from "./model.ts";
import { bandColor, type Colors } from "./colors.ts";

const NAMES = 6;

/** The bands of the lane of all processes, the heaviest first. */
function Legend(props: { rows: Row[]; colors: Colors }) {
  const lane = props.rows.find((row) => row.lane?.kind === "process")?.lane;
  const bands = (lane?.series ?? []).map((band, at) => ({ band, at })).filter(({ band }) => band.band !== "idle" && band.total > 0);
  bands.sort((a, b) => b.band.total - a.band.total);
  if (bands.length === 0) return null;
  /** Process ids only where two have the same name. */
  const plain = (name: string) => name.replace(/ \(\d+\)$/, "");
  const text = (name: string) => (bands.filter((one) => plain(one.band.name) === plain(name)).length > 1 ? name : plain(name));
  return (
    <span class="legend" aria-hidden="true">
      {bands.slice(0, NAMES).map(({ band, at }) => (
        <span key={`${band.name} ${at}`}>
          <i class={isGuard(band.name) ? "swatch hatched" : "swatch"} style={{ backgroundColor: bandColor(band, at, props.colors) }} />
          <span class="cut" title={visible(text(band.name))}>
            {visible(text(band.name))}
          </span>
        </span>
      ))}
    </span>
  );
}

function Heat(props: { of: "busy" | "interrupts" }) {
  const steps = props.of === "busy" ? "k" : "h";
  return (
    <span class="heat-key" aria-hidden="true">
      {props.of === "busy" ? "busy" : "DPC + ISR"} 0
      {[1, 2, 3, 4, 5, 6].map((step) => (
        <i key={step} style={{ backgroundColor: `var(--${steps}${step})` }} />
      ))}
      100 %
    </span>
  );
}

export function Bar(props: {
  settings: Settings;
  rows: Row[];
  now: Lanes | null;
  colors: Colors | null;
  sql: string | null;
  error: string | null;
  lanesOpen: boolean;
  onLanes: () => void;
  zoom: (factor: number) => void;
}) {
  const { settings, now, rows } = props;
  const lost = now ? now.events_lost + now.buffers_lost : 0;
  const change = (some: Partial<Settings>) => set<Settings>("timeline", some);
  const heat = rows.find((row) => row.heat)?.heat;
  return (
    <header>
      <button type="button" class="fold" aria-expanded={settings.open} onClick={() => change({ open: !settings.open })}>
        <span aria-hidden="true">{settings.open ? "▾" : "▸"}</span> Timeline
      </button>
      {settings.open && (
        <>
          {props.colors && <Legend rows={rows} colors={props.colors} />}
          {view.value.other && (
            <span class="muted">
              <b class="ghost-key" aria-hidden="true" /> A, before
            </span>
          )}
          {heat && <Heat of={heat} />}
          {lost > 0 && <span class="tl-lost" title="What is missing makes numbers too small; see the ledger.">{`▨ ${amount(now?.events_lost ?? 0, "count")} events and ${amount(now?.buffers_lost ?? 0, "count")} buffers were lost`}</span>}
          {now && now.unused.length > 0 && <span class="muted">Timeline ignores {now.unused.join(" and ")} filters</span>}
          {props.error && <span class="tl-fault" role="alert">{props.error}</span>}
          <span class="grow" />
          {rows.some((row) => row.lane?.kind === "cpu") && (
            <span class="segmented" role="group" aria-label="Colors of processors">
              <button type="button" aria-pressed={settings.color === "heat"} onClick={() => change({ color: "heat" })}>
                Heat
              </button>
              <button type="button" aria-pressed={settings.color === "process"} onClick={() => change({ color: "process" })}>
                Process
              </button>
              <button type="button" aria-pressed={settings.color === "mode"} title="Color processors by user and kernel mode, from samples" onClick={() => change({ color: settings.color === "mode" ? "heat" : "mode" })}>
                User/kernel
              </button>
            </span>
          )}
          <button type="button" class="small" aria-expanded={props.lanesOpen} onClick={props.onLanes}>
            Lanes
          </button>
          <button type="button" class="small" aria-pressed={settings.table} onClick={() => change({ table: !settings.table })}>
            Show as table
          </button>
          <button type="button" class="small" aria-label="Zoom in" onClick={() => props.zoom(0.5)}>
            +
          </button>
          <button type="button" class="small" aria-label="Zoom out" onClick={() => props.zoom(2)}>
            −
          </button>
          <Sql sql={props.sql} />
        </>
      )}
    </header>
  );
}
