/** A severity as a word with its shape. */

import { Severity } from "./icons.tsx";

export function Badge(props: { name: string }) {
  return (
    <span class={`badge ${props.name}`}>
      <Severity name={props.name} size={13} />
      {props.name}
    </span>
  );
}
