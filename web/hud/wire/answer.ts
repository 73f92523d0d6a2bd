/** An answer that follows its question: the latest question wins, older ones are given up, and the server hears of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { pending } from "../base/awaited.ts";
import { tick } from "../state/live.ts";

export interface Answer<T> {
  value: T | null;
  error: string | null;
  /** A newer answer is on its way; `value` is the one before. */
  pending: boolean;
}

/** Answers of this page, the latest last. */
const kept = new Map<string, unknown>();
/** A round through all panels asks for some 150. */
const KEEP = 300;
/** The window that they are of. */
let windowOf = 0;

function keep(key: string, value: unknown): void {
  kept.delete(key);
  kept.set(key, value);
  const oldest = kept.keys().next().value;
  if (kept.size > KEEP && oldest !== undefined) kept.delete(oldest);
}

/** The answer to a question of the window that stands, if it is kept. */
function recall(key: string): unknown {
  if (windowOf !== tick.peek()) kept.clear();
  windowOf = tick.peek();
  const known = kept.get(key);
  if (known !== undefined) keep(key, known);
  return known;
}

/** The kept answer, or that of asking now, for questions that follow from others. */
export async function recalled<T>(key: string, run: () => Promise<T>): Promise<T> {
  const known = recall(key);
  if (known !== undefined) return known as T;
  const of = windowOf;
  const value = await run();
  if (of === windowOf) keep(key, value);
  return value;
}

interface Flight {
  /** How many wait for it. */
  users: number;
  abort: AbortController;
  answer: Promise<unknown>;
}

/** Questions that are on their way, by window and key: who asks the same waits for the same answer. */
const flights = new Map<string, Flight>();

function join(question: string, run: (signal: AbortSignal) => Promise<unknown>): Flight {
  let flight = flights.get(question);
  if (!flight) {
    const abort = new AbortController();
    flight = { users: 0, abort, answer: run(abort.signal) };
    flights.set(question, flight);
    const own = flight;
    const landed = () => void (flights.get(question) === own && flights.delete(question));
    own.answer.then(landed, landed);
  }
  flight.users += 1;
  return flight;
}

/** The last one who gives it up ends it. */
function leave(question: string, flight: Flight): void {
  flight.users -= 1;
  if (flight.users > 0) return;
  flight.abort.abort();
  if (flights.get(question) === flight) flights.delete(question);
}

/**
 * Asks whenever `key` changes (null: not at all), and again when the window of a trace that is followed has moved on: then the question before is
 * answered first, so that a slow one is answered at all. Asking waits `delay` milliseconds for the next change.
 */
export function useAnswer<T>(key: string | null, run: (signal: AbortSignal) => Promise<T>, delay = 0): Answer<T> {
  const [state, set] = useState<Answer<T>>({ value: null, error: null, pending: key !== null });
  const question = useRef(run);
  question.current = run;
  const job = useRef<{ key: string; again: boolean; stop: () => void } | null>(null);
  useEffect(() => {
    if (key !== null && job.current?.key === key) {
      job.current.again = true;
      return;
    }
    job.current?.stop();
    job.current = null;
    if (key === null) {
      set({ value: null, error: null, pending: false });
      return;
    }
    const begin = () => {
      const known = recall(key) as T | undefined;
      if (known !== undefined) {
        set({ value: known, error: null, pending: false });
        return;
      }
      const asked = `${windowOf} ${key}`;
      let [flight, stopped]: [Flight | null, boolean] = [null, false];
      set((before) => ({ ...before, pending: true }));
      const close = pending();
      const of = windowOf;
      const end = (answer: Answer<T>) => {
        close();
        if (stopped) return;
        job.current = null;
        set(answer);
        if (mine.again) begin();
      };
      const timer = setTimeout(() => {
        flight = join(asked, question.current);
        flight.answer.then(
          (value) => {
            if (of === windowOf) keep(key, value);
            end({ value: value as T, error: null, pending: false });
          },
          (error: unknown) => end({ value: null, error: error instanceof Error ? error.message : String(error), pending: false }),
        );
      }, delay);
      const mine = {
        key,
        again: false,
        stop: () => {
          clearTimeout(timer);
          stopped = true;
          if (flight) leave(asked, flight);
          close();
        },
      };
      job.current = mine;
    };
    begin();
  }, [key, tick.value]);
  useEffect(
    () => () => {
      job.current?.stop();
      job.current = null;
    },
    [],
  );
  return state;
}
