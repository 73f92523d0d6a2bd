/** Who makes a program or driver and what it is for, from the knowledge base. */

import { visible } from "../base/value.ts";
import { know } from "./hint.tsx";
import { useAnswer } from "../wire/answer.ts";

export function Maker(props: { name: string }) {
  const name = props.name.replace(/ \(\d+\)$/, "");
  const known = useAnswer(`knows ${name}`, () => know(name)).value?.module;
  if (!known) return null;
  return (
    <p class="muted">
      {[known.product || known.what, known.vendor, known.category].filter(Boolean).map(visible).join(" · ")}
    </p>
  );
}
