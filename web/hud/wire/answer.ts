/** An answer that follows its question: the latest question wins, older ones are given up, and the server hears of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { pending } from "../base/awaited.ts";

export interface Answer<T> {
  value: T | null;
  error: string | null;
  /** A newer answer is on its way; `value` is the one before. */
  pending: boolean;
}

/** Answers of this page, the latest last. */
const kept = new Map<string, unknown>();
const KEEP = 60;

function keep(key: string, value: unknown): void {
  kept.delete(key);
  kept.set(key, value);
  const oldest = kept.keys().next().value;
  if (kept.size > KEEP && oldest !== undefined) kept.delete(oldest);
}

/** Asks whenever `key` changes (null: not at all). Asking waits `delay` milliseconds for the next change. */
export function useAnswer<T>(key: string | null, run: (signal: AbortSignal) => Promise<T>, delay = 0): Answer<T> {
  const [state, set] = useState<Answer<T>>({ value: null, error: null, pending: key !== null });
  const asked = useRef<string | null>(null);
  useEffect(() => {
    if (key === null) {
      set({ value: null, error: null, pending: false });
      return;
    }
    asked.current = key;
    const known = kept.get(key) as T | undefined;
    if (known !== undefined) {
      keep(key, known);
      set({ value: known, error: null, pending: false });
      return;
    }
    const abort = new AbortController();
    set((before) => ({ ...before, pending: true }));
    const close = pending();
    const timer = setTimeout(() => {
      run(abort.signal).then(
        (value) => {
          keep(key, value);
          close();
          if (!abort.signal.aborted) set({ value, error: null, pending: false });
        },
        (error: unknown) => {
          close();
          if (!abort.signal.aborted) set({ value: null, error: error instanceof Error ? error.message : String(error), pending: false });
        },
      );
    }, delay);
    return () => {
      clearTimeout(timer);
      abort.abort();
      close();
    };
  }, [key]);
  return state;
}
