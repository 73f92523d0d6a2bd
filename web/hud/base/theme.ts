/** Light, dark, high contrast, or as the system says; `themed` changes when drawings must be made anew. */

import { signal } from "@preact/signals";

export const THEMES = ["auto", "light", "dark", "contrast"] as const;
export type ThemeName = (typeof THEMES)[number];
const KEY = "etwhy-theme";

export const chosen = signal<ThemeName>("auto");
/** Counts changes of colours. */
export const themed = signal(0);

export function choose(name: ThemeName): void {
  chosen.value = name;
  if (name === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = name;
  themed.value += 1;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Kept for this page only.
  }
}

export function startTheme(): void {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    // No storage here.
  }
  choose(THEMES.find((name) => name === kept) ?? "auto");
  // What was drawn before the font was there is drawn again.
  void document.fonts?.ready.then(() => (themed.value += 1));
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", () => (themed.value += 1));
  }
}
