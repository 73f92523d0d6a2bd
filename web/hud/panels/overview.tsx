/** What an investigator reads first: the verdict, findings, the bill, the machine. */

import type { Panel } from "../app/panel.ts";
import { Box } from "../parts/box.tsx";
import { report } from "../state/view.ts";

function Overview() {
  const data = report.value;
  if (!data) return null;
  return (
    <Box title="Verdict">
      <p class="verdict">{data.sentence}</p>
    </Box>
  );
}

export const panel: Panel = {
  id: "overview",
  title: "Overview",
  group: "look",
  order: 0,
  about: "The verdict, findings, the bill, the machine",
  tables: [],
  View: Overview,
};
