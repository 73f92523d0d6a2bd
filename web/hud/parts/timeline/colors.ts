/** Colours of the time axis. */

import { colorOf, css, theme } from "../../base/colors.ts";
import type { Band } from "./model.ts";

export interface Colors {
  dark: boolean;
  text: string;
  muted: string;
  line: string;
  strong: string;
  card: string;
  sunken: string;
  accent: string;
  interrupt: string;
  idle: string;
  lost: string;
  font: string;
  severity: Record<string, string>;
}

export function colors(): Colors {
  const pick = (name: string) => css(`--${name}`);
  // Variables with light-dark() are not resolved by getPropertyValue: an element's own colour is.
  const probe = document.createElement("i");
  probe.style.setProperty("forced-color-adjust", "none");
  document.body.append(probe);
  const resolved = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color || pick(name);
  };
  const out = {
    dark: theme().dark,
    text: resolved("text"),
    muted: resolved("muted"),
    line: resolved("line"),
    strong: resolved("strong-line"),
    card: resolved("card"),
    sunken: resolved("sunken"),
    accent: resolved("accent"),
    interrupt: resolved("interrupt"),
    idle: resolved("idle"),
    lost: resolved("lost"),
    font: getComputedStyle(document.body).fontFamily || "sans-serif",
    severity: { critical: resolved("critical"), warning: resolved("warning"), notice: resolved("notice"), info: resolved("info") },
  };
  probe.remove();
  return out;
}

export const plainName = (name: string) => name.replace(/ \(-?\d+\)$/, "");

/** Bands that are nobody's: disks, directions, counters. */
const PLAIN = ["--c8", "--c4", "--c2", "--c5", "--c6", "--c3", "--c7", "--c1"];

export function bandColor(band: Band, at: number, c: Colors): string {
  if (band.color) return css(band.color);
  switch (band.band) {
    case "process":
      return colorOf(plainName(band.name), c.dark);
    case "rest":
      return css("--os");
    case "dpc":
      return c.interrupt;
    case "isr":
      return css("--isr");
    case "unknown":
      return c.lost;
    case "kernel":
      return css("--kernel");
    case "user":
      return css("--user");
    case "idle":
      return c.idle;
    default:
      return css(PLAIN[at % PLAIN.length] ?? "--os");
  }
}
