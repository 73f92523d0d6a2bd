"""Asks DuckDB, which shares no code with this project, all views of a store of many traces.

Prints one JSON object: for each view {"columns", "rows"} or {"error"}.
Run: python query_store.py STORE FOLDER_OF_VIEWS
"""

import decimal
import json
import pathlib
import sys

import duckdb

store, folder = map(pathlib.Path, sys.argv[1:])
connection = duckdb.connect()
contract = json.loads((store / "contract.json").read_text())
views = {file.stem: file.read_text() for file in sorted(folder.glob("*.sql"))}
LEDGERS = ("run", "input")
TYPES = {"i64": "bigint", "i32": "integer", "f64": "double", "bool": "boolean", "text": "varchar", "long text": "varchar"}


def quoted(path):
    return "'" + str(path).replace("'", "''") + "'"


# Tables without rows have no files.
for table in contract["tables"]:
    name = table["name"]
    pattern = store / "batches" / "*" / f"{name}.parquet"
    if name == "knowledge":
        source = f"select * from read_parquet({quoted(store / 'knowledge.parquet')})"
    elif list((store / "batches").glob(f"*/{name}.parquet")):
        source = f"select * from read_parquet({quoted(pattern)}, union_by_name = true)"
        # Rows of before a column was known have none.
        there = connection.sql(source).columns
        new = [f"cast(null as {TYPES[c['type']]}) as \"{c['name']}\"" for c in table["columns"] if c["name"] not in there]
        source = source.replace("*", ", ".join(["*", *new]), 1)
    else:
        columns = ", ".join(f"cast(null as {TYPES[c['type']]}) as \"{c['name']}\"" for c in table["columns"])
        source = f"select {columns} where false"
    connection.sql(f'create view "all_{name}" as {source}')

# Which readings count is asked of all rows, everything else of the current ones.
current = views["current"]
for name in ("run", "trace_file"):
    connection.sql(f'create view "{name}" as select * from "all_{name}"')
connection.sql(f"create table current_reading as {current}")
connection.sql('drop view "trace_file"; drop view "run"')
for table in contract["tables"]:
    name = table["name"]
    if name in LEDGERS or name == "knowledge":
        connection.sql(f'create view "{name}" as select * from "all_{name}"')
    else:
        connection.sql(
            f'create view "{name}" as select a.* from "all_{name}" as a join current_reading as c '
            "on c.trace_id = a.trace_id and c.extract_id = a.extract_id"
        )


def plain(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


said = {}
for name, sql in views.items():
    try:
        result = connection.sql(sql if name != "current" else "select * from current_reading")
        said[name] = {"columns": result.columns, "rows": [[plain(v) for v in row] for row in result.fetchall()]}
    except duckdb.Error as error:
        said[name] = {"error": str(error)}
print(json.dumps(said))
