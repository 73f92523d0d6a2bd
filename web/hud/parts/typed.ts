/** Names as a shell takes them. */

/** A file's name behind a command: as it is, in quotes, or `FILE` where a shell could take part of it for something else. */
export function typed(name: string): string {
  if (/^[A-Za-z0-9_./\\][\w.:\\/+@-]*$/.test(name)) return name;
  return /^[A-Za-z0-9_./\\][\w.:\\/+@() -]*$/.test(name) ? `"${name}"` : "FILE";
}
