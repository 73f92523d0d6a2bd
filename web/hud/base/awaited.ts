/** What is still to come: answers that were asked for, and changes that wait for a hand to rest. */

let waiting = 0;
/** Changes that only wait for a hand to rest. */
let resting = 0;

/** How much is awaited stands at the page's root: tests and tools see when the page is whole. */
export function awaited(by: number): void {
  waiting += by;
  document.documentElement.dataset["awaited"] = String(waiting);
}

/** One thing more is awaited, until the returned function is called; that may be done again. */
export function pending(): () => void {
  let open = true;
  awaited(1);
  return () => {
    if (open) awaited(-1);
    open = false;
  };
}

function rests(by: number): void {
  resting += by;
  document.documentElement.dataset["resting"] = String(resting);
}

/** Runs something after `delay` milliseconds, and is awaited until then. Returns what takes it back; that may be called at any time. */
export function later(run: () => void, delay: number): () => void {
  const awaits = pending();
  let open = true;
  rests(1);
  const close = () => {
    if (open) rests(-1);
    open = false;
    awaits();
  };
  const timer = setTimeout(() => {
    // What it starts is awaited before it ends itself.
    try {
      run();
    } finally {
      close();
    }
  }, delay);
  return () => {
    clearTimeout(timer);
    close();
  };
}
