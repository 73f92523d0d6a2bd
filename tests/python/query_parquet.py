"""Asks DuckDB, which shares no code with this project, about a Parquet file.

Prints the rows of a query as JSON lists, one a line; `$file` in the query stands for the file.
Run: python query_parquet.py file.parquet "select count(*) from $file"
"""

import json
import sys

import duckdb

path, query = sys.argv[1:]
connection = duckdb.connect()
connection.sql("set threads = 1")
name = "'" + path.replace("'", "''") + "'"
for row in connection.sql(query.replace("$file", name)).fetchall():
    print(json.dumps(row))
