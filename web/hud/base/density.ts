/** How close rows stand. */

import { signal } from "@preact/signals";

export const DENSITIES = ["dense", "normal", "roomy"] as const;
export type Density = (typeof DENSITIES)[number];

const HEIGHTS: Record<Density, number> = { dense: 20, normal: 24, roomy: 32 };
const KEY = "etwhy-density";

export const density = signal<Density>("normal");
/** Height of a row of a table, px. */
export const rowHeight = () => HEIGHTS[density.value];

export function chooseDensity(name: Density): void {
  density.value = name;
  document.documentElement.dataset["density"] = name;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Kept for this page only.
  }
}

export function startDensity(): void {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    // No storage here.
  }
  chooseDensity(DENSITIES.find((name) => name === kept) ?? "normal");
}
