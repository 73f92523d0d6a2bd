/** Colours: stable (a name has the same one everywhere and always) and told apart by people who do not see all of them. */

/** Hue circle in steps that differ in lightness too; from the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/). */
const LIGHT = ["#3b6fd4", "#e59a1c", "#2f9e8f", "#a65fd3", "#6a9a2d", "#d65a8c", "#8a6f57", "#4f9ed9", "#b8860b", "#5b7f95", "#c2703d", "#7f6fc9"];
const DARK = ["#6f9bf0", "#f0b75a", "#5cc4b6", "#c490ea", "#98c45e", "#ec8bb4", "#b89a80", "#86c2ee", "#d9b345", "#8fb0c4", "#e29b6e", "#aaa0ea"];

export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return value;
}

export interface Theme {
  dark: boolean;
  contrast: boolean;
}

/** What canvases need of the style sheet: they do not follow it by themselves. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  const dark = chosen === "dark" || chosen === "contrast" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  return { dark, contrast: chosen === "contrast" || matchMedia("(prefers-contrast: more)").matches || matchMedia("(forced-colors: active)").matches };
}

/** The colour of a name: process, module, category. */
export function colorOf(name: string, dark: boolean): string {
  const list = dark ? DARK : LIGHT;
  return list[hash(name.toLowerCase()) % list.length] ?? "#888888";
}

let probe: HTMLElement | null = null;

/** A colour of the style sheet as canvases understand it: variables hold `light-dark(…)`, which only a property resolves. */
export function css(name: string): string {
  if (!probe) {
    probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
