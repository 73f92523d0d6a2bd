/** Texts of the knowledge base: parts between backticks are commands. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { visible } from "../base/value.ts";

export function Words(props: { text: string }) {
  const parts = props.text.split("`");
  // An odd number of backticks: they are not ours.
  if (parts.length % 2 === 0) return <>{visible(props.text)}</>;
  return <>{parts.map((part, at): ComponentChildren => (at % 2 === 0 ? visible(part) : <code key={at}>{visible(part)}</code>))}</>;
}

/** A long text: its beginning, and the rest on demand. */
export function Long(props: { text: string; most?: number }) {
  const [open, setOpen] = useState(false);
  const most = props.most ?? 320;
  if (props.text.length <= most * 1.3) return <Words text={props.text} />;
  // Cut behind a sentence or a word, and not inside of a command.
  let at = Math.max(props.text.lastIndexOf(". ", most) + 1, props.text.lastIndexOf(" ", most));
  if ((props.text.slice(0, at).split("`").length - 1) % 2 === 1) at = props.text.indexOf("`", at) + 1;
  if (at < most / 2) at = most;
  return (
    <>
      <Words text={open ? props.text : `${props.text.slice(0, at)} …`} />{" "}
      <button type="button" class="small" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "less" : "more"}
      </button>
    </>
  );
}
