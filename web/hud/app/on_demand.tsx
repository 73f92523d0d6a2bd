/** Parts of the page that stand in a file of their own (`more/main.ts`): it is loaded as soon as somebody looks at one of them. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { pending } from "../base/awaited.ts";
import { Bones } from "../parts/bones.tsx";
import { Fault } from "../parts/box.tsx";

type More = typeof import("../more/main.ts");

const more = signal<More | null>(null);
const failed = signal<string | null>(null);

async function load(): Promise<void> {
  const close = pending();
  try {
    more.value = await import("../more/main.ts");
    failed.value = null;
  } catch {
    failed.value = "This part of the page could not be loaded: does etwhy still run?";
  } finally {
    close();
  }
}

/** Loads it while nobody waits. */
export function loadSoon(): void {
  // Safari has no idle time to ask for.
  (globalThis.requestIdleCallback ?? setTimeout)(() => void load());
}

/** A part of that file as a component: bones stand in its place until the file is there. */
export function onDemand<P extends object>(pick: (more: More) => ComponentType<P>): ComponentType<P> {
  return (props: P) => {
    useEffect(() => void (more.value ?? load()), []);
    if (!more.value) return failed.value ? <Fault error={failed.value} /> : <Bones lines={8} />;
    const Part = pick(more.value);
    return <Part {...props} />;
  };
}
