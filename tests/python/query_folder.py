"""Asks DuckDB, which shares no code with this project, about an extract: a folder with a Parquet file per table.

Reads a JSON list of {"name", "sql", "view"} from standard input; those with "view" become views of that name first. Prints a line
for each: {"name", "columns", "rows"} or {"name", "error"}.
Run: python query_folder.py FOLDER < queries.json
"""

import decimal
import json
import pathlib
import sys

import duckdb

folder = pathlib.Path(sys.argv[1])
connection = duckdb.connect()
connection.sql("set threads = 1")
for file in sorted(folder.glob("*.parquet")):
    name = str(file).replace("'", "''")
    connection.sql(f"create view \"{file.stem}\" as select * from read_parquet('{name}')")


def plain(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


for query in json.load(sys.stdin):
    said = {"name": query["name"]}
    try:
        if query.get("view"):
            connection.sql(f"create view \"{query['name']}\" as {query['sql']}")
            result = connection.sql(f"select * from \"{query['name']}\"")
        else:
            result = connection.sql(query["sql"])
        said["columns"] = result.columns
        said["rows"] = [[plain(value) for value in row] for row in result.fetchall()]
    except duckdb.Error as error:
        said["error"] = str(error)
    print(json.dumps(said))
