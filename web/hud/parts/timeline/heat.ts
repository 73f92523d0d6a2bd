/** Lines of processors of which the colour says how much. */

import { css } from "../../base/colors.ts";
import type { Lane, Lanes } from "./model.ts";
import { pixel } from "./pixel.ts";

const STEPS = 6;

/** A line of which the colour says how much, from nothing to all. */
export function heat(pixels: Uint32Array, width: number, data: Lanes, lane: Lane, top: number, tall: number, of: "busy" | "interrupts"): void {
  const letter = of === "busy" ? "k" : "h";
  const colors = Array.from({ length: STEPS }, (_, step) => pixel(css(`--${letter}${step + 1}`)));
  const ground = pixel(css("--idle"));
  const sums = new Float64Array(data.count);
  const over = new Float64Array(data.count);
  for (const band of lane.series) {
    const interrupt = band.band === "dpc" || band.band === "isr";
    if (["idle", "kernel", "user", "unknown"].includes(band.band) || (of === "interrupts" && !interrupt)) continue;
    // Interrupts are part of the runs of others, unless samples tell.
    const into = interrupt && of === "busy" && lane.source !== "sample" ? over : sums;
    for (let at = band.from; at < band.to; at += 1) {
      const bucket = data.buckets[at] ?? 0;
      into[bucket] = (into[bucket] ?? 0) + (data.values[at] ?? 0);
    }
  }
  const full = lane.full || data.bucket_ns;
  for (let bucket = 0; bucket < data.count; bucket += 1) {
    const part = Math.max(sums[bucket] ?? 0, over[bucket] ?? 0) / full;
    const color = part < 0.004 ? ground : (colors[Math.min(STEPS - 1, Math.floor(part * STEPS))] ?? ground);
    for (let y = 0, place = top * width + bucket; y < tall; y += 1, place += width) pixels[place] = color;
  }
}
