/** Colours of boxes: by module, category, tag or kind; by difference when two things are compared. */

import { css, fillOf, theme } from "../../base/colors.ts";
import type { ColorBy } from "./model.ts";

export interface Named {
  label: string;
  kind: string;
  module: string;
  category: string;
  tag: string;
}

/** What decides the colour; empty: no colour of its own. */
export function colorKey(of: Named, by: ColorBy): string {
  if (of.kind === "interrupt") return "DPC and ISR";
  if (of.kind === "root" || of.kind === "group" || of.kind === "no_stack") return "";
  switch (by) {
    case "category":
      return of.category || "no category";
    case "tag":
      // The first word of a tag is what for; the rest goes into detail.
      return (of.tag.split("/")[0] ?? "").trim() || "no tag";
    case "kind":
      return of.kind;
    default:
      return of.module || of.kind;
  }
}

/** Names stand for themselves: modules have the colour that they have everywhere. */
export interface Paint {
  fill: (key: string) => string;
  ink: string;
  plain: string;
  line: string;
  accent: string;
  hit: string;
  watched: string;
  dark: boolean;
  contrast: boolean;
  card: string;
  muted: string;
}

/** Colours of the style sheet, read once per drawing. */
export function paint(): Paint {
  const { dark, contrast } = theme();
  const interrupt = css("--interrupt");
  const probe = (name: string, light: string, night: string) => resolve(name) ?? (dark ? night : light);
  const plain = probe("--sunken", "#e4e8ee", "#2b3341");
  return {
    fill: (key) => (key === "" ? plain : key === "DPC and ISR" ? (resolved(interrupt) ?? (dark ? "#e8635a" : "#c9352b")) : key.startsWith("no ") ? (dark ? "#55606f" : "#c3cad4") : css(fillOf(key))),
    ink: dark ? "#0b0e13" : "#10141b",
    plain,
    line: probe("--card", "#ffffff", "#1a1f29"),
    accent: probe("--text", "#1b2230", "#e4e8ef"),
    hit: dark ? "#ffe14d" : "#ffd400",
    watched: probe("--watched", "#b0286f", "#f07db8"),
    dark,
    contrast,
    card: probe("--card", "#ffffff", "#1a1f29"),
    muted: probe("--muted", "#525c6e", "#a6afbe"),
  };
}

let element: HTMLElement | null = null;
/** A colour as canvases read it: `light-dark()` is the style sheet's own. */
function resolved(value: string): string | null {
  if (!value) return null;
  if (!element) {
    element = document.createElement("span");
    element.hidden = true;
    element.style.setProperty("forced-color-adjust", "none");
    document.body.append(element);
  }
  element.style.color = "";
  element.style.color = value;
  return getComputedStyle(element).color || null;
}
const resolve = (name: string) => resolved(`var(${name})`);

/** Orange is more than before, teal is less, as in tables; grey is the same. `change` is the difference of shares, -1 to 1. */
export function differenceColor(change: number, dark: boolean): string {
  const strength = Math.min(1, Math.sqrt(Math.abs(change)) * 2.2);
  if (strength < 0.02) return dark ? "#3a4250" : "#e8ebf0";
  const base = dark ? [58, 66, 80] : [238, 240, 244];
  const full = change > 0 ? (dark ? [200, 96, 56] : [224, 138, 104]) : dark ? [44, 136, 128] : [116, 184, 176];
  return `rgb(${base.map((from, at) => Math.round(from + ((full[at] ?? 0) - from) * strength)).join(" ")})`;
}

/** Text on a colour: dark or light, whichever has more contrast. */
export function inkOn(color: string): string {
  const hex = /^#([0-9a-f]{6})$/i.exec(color)?.[1];
  const parts = hex ? [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) : (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [r = 0, g = 0, b = 0] = parts.map((value) => {
    const c = value / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? "#0b0e13" : "#ffffff";
}
