/**
 * Colours of entities (processes, modules, files, providers): the eight heaviest of a trace have a hue each, Windows and all others are
 * grey with a name. A name keeps its hue in every panel; a process and its main module share it. What stands in brackets, `[idle]` or
 * `[not observed]`, is nobody's and grey, but for code compiled at run time, which is the program's own.
 */

const HUES = 8;

/** Hue by name: 0 is grey. */
let hues = new Map<string, number>();
let guards = new Set<string>();
/** Names that have no weight take what is left, in the order in which they are drawn. */
let free = HUES;

/** The process id behind a name says nothing of the program. */
export const plain = (name: string) => name.replace(/ \(-?\d+\)$/, "").toLowerCase();

/** Gives hues: the heaviest first; `windows` stay grey, `security` is hatched. */
export function assign(heaviest: string[], windows: string[], security: string[]): void {
  hues = new Map(windows.map((name) => [plain(name), 0]));
  let next = 1;
  for (const name of heaviest) {
    const key = plain(name);
    if (hues.has(key)) continue;
    hues.set(key, next <= HUES ? next : 0);
    if (next <= HUES) next += 1;
  }
  free = next;
  guards = new Set(security.map(plain));
}

function hueOf(name: string): number {
  const key = plain(name);
  let hue = /^\[(?!\.net)/.test(key) ? 0 : hues.get(key);
  if (hue === undefined) {
    hue = free <= HUES ? free : 0;
    if (free <= HUES) free += 1;
    hues.set(key, hue);
  }
  return hue;
}

/** True of security products: they are hatched. */
export const isGuard = (name: string) => guards.has(plain(name));

/** The variable of a mark's colour. */
export const markOf = (name: string) => {
  const hue = hueOf(name);
  return hue === 0 ? "--os" : `--c${hue}`;
};
/** The variable of a fill that carries text. */
export const fillOf = (name: string) => {
  const hue = hueOf(name);
  return hue === 0 ? "--fos" : `--f${hue}`;
};

export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return value;
}

export interface Theme {
  dark: boolean;
  contrast: boolean;
}

/** What canvases need of the style sheet: they do not follow it automatically. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  const dark = chosen === "dark" || chosen === "contrast" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  return { dark, contrast: chosen === "contrast" || matchMedia("(prefers-contrast: more)").matches || matchMedia("(forced-colors: active)").matches };
}

/** The colour of a name, as canvases understand it. */
export const colorOf = (name: string, _dark?: boolean): string => css(markOf(name));

let probe: HTMLElement | null = null;
let seen = "";
const known = new Map<string, string>();

/** A colour of the style sheet as canvases understand it: variables hold `light-dark(…)`, which only a property resolves. */
export function css(name: string): string {
  const { dark, contrast } = theme();
  const now = `${dark} ${contrast} ${document.documentElement.dataset["theme"] ?? ""}`;
  if (now !== seen) {
    seen = now;
    known.clear();
  }
  let color = known.get(name);
  if (color === undefined) {
    if (!probe) {
      probe = document.createElement("span");
      probe.hidden = true;
      // Pictures have colours of their own in a forced palette too: one colour for all would say nothing.
      probe.style.setProperty("forced-color-adjust", "none");
      document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    color = getComputedStyle(probe).color;
    known.set(name, color);
  }
  return color;
}

/** The page's font, for canvases. */
export const font = (size: number): string => `${size}px ${getComputedStyle(document.body).fontFamily || "sans-serif"}`;
