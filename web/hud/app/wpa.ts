/** Views from a profile of WPA. */

import { FRESH } from "../parts/pivot/model.ts";
import { keepView, showView, type Saved } from "../state/saved.ts";
import { MOST, readProfile } from "../more/wpa.ts";
import { counted } from "../base/value.ts";

/** Keeps the tables of a profile as saved views and shows the first; what has nothing here. */
export async function importProfile(file: File): Promise<string[]> {
  if (file.size > MOST) throw new Error("The file is too large for a profile of WPA.");
  const { views, left } = readProfile(await file.text());
  const all = views.map(({ name, ...rest }): Saved => ({ name, panel: "tables", settings: { tables: { ...FRESH, ...rest, mode: "groups" } } }));
  all.forEach(keepView);
  if (all[0]) showView(all[0]);
  const said = `${file.name}: ${counted(all.length, "view")}, kept under Saved views.`;
  return [said, ...(left.length > 0 ? [`Nothing here has: ${left.join("; ")}.`] : [])];
}
