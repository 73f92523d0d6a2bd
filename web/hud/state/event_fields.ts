/** Fields of events as columns: a question names one as `fields.NAME`, and the server makes it a column. */

import { signal } from "@preact/signals";
import type { ColumnInfo } from "../wire/types.ts";

/** Fields of which somebody learned that not all of their values are integers. */
export const worded = signal<ReadonlySet<string>>(new Set());

const PREFIX = "fields.";

/** The field that a key means. */
export const fieldOf = (key: string): string | null => (key.startsWith(PREFIX) && key.length > PREFIX.length ? key.slice(PREFIX.length) : null);

export const fieldKey = (name: string): string => `${PREFIX}${name}`;

/** Its declaration. */
export const fieldColumn = (name: string): ColumnInfo => ({
  name: fieldKey(name), type: worded.value.has(name) ? "long text" : "i64", unit: "", role: "other", doc: `Field ${name} of the event`,
});

/** Events that are looked at for the names of their fields. */
const LOOKED = 20_000;

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The query for names of fields, those first that most events have: of the first events that have these texts. */
export function fieldsQuery(range: [number, number] | null, texts: [string, string][]): string {
  const only = [
    ...(range ? [`ts_ns >= ${Math.floor(range[0])}`, `ts_ns < ${Math.ceil(range[1])}`] : []),
    ...texts.map(([column, value]) => `"${column}" = ${literal(value)}`),
  ];
  const where = only.length > 0 ? ` WHERE ${only.join(" AND ")}` : "";
  return `SELECT field.key AS name, max(field.type NOT IN ('integer', 'true', 'false', 'null')) AS worded FROM (SELECT fields FROM event${where} LIMIT ${LOOKED}) AS e, json_each(e.fields) AS field GROUP BY field.key ORDER BY count(*) DESC, field.key LIMIT 200`;
}
