"""Asks DuckDB or Spark, which share no code with this project, about rows that are given.

Run: python query_rows.py duckdb|spark < cases.jsonl

Each line is {"name", "tables": {name: {"columns": [[name, type]], "rows"}}, "views": [[name, sql]], "queries": [sql]}; types are BIGINT, INTEGER,
DOUBLE, BOOLEAN and VARCHAR. Prints a line for each: {"name", "answers": [{"rows"} or {"error"}]}.
"""

import decimal
import json
import sys


def plain(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


def typed(ty, value):
    if value is None:
        return None
    return {"DOUBLE": float, "BOOLEAN": bool, "VARCHAR": str}.get(ty, int)(value)


def rows_of(table):
    return [tuple(typed(ty, value) for (_, ty), value in zip(table["columns"], row)) for row in table["rows"]]


class DuckDb:
    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.sql("set threads = 1")
        self.error = duckdb.Error

    def begin(self, tables):
        self.connection.begin()
        for name, table in tables.items():
            columns = ", ".join(f'"{column}" {ty}' for column, ty in table["columns"])
            self.connection.execute(f'create table "{name}" ({columns})')
            if table["rows"]:
                places = ", ".join("?" for _ in table["columns"])
                self.connection.executemany(f'insert into "{name}" values ({places})', rows_of(table))

    def view(self, name, sql):
        self.connection.execute(f'create view "{name}" as {sql}')

    def ask(self, sql):
        return self.connection.sql(sql).fetchall()

    def end(self):
        self.connection.rollback()


class Spark:
    # DuckDB's names of types, which are SQL's, in Spark's words.
    TYPES = {"VARCHAR": "STRING"}

    def __init__(self):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.default.parallelism": "1",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        builder = SparkSession.builder.master("local[1]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.error = PySparkException
        self.names = []

    def literal(self, ty, value):
        if value is None:
            return "NULL"
        if ty == "VARCHAR":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if ty == "DOUBLE":
            return f"{value!r}D"
        return str(value)

    def begin(self, tables):
        # Rows as a query of literals: Spark plans them away and starts no job for an empty table.
        for name, table in tables.items():
            columns = table["columns"]
            rows = rows_of(table) or [tuple(None for _ in columns)]
            values = ", ".join(
                "(" + ", ".join(self.literal(ty, v) for (_, ty), v in zip(columns, row)) + ")" for row in rows
            )
            names = ", ".join(f"`{column}`" for column, _ in columns)
            selected = ", ".join(f"CAST(`{c}` AS {self.TYPES.get(ty, ty)}) AS `{c}`" for c, ty in columns)
            where = "" if table["rows"] else " WHERE 1 = 0"
            self.view(name, f"SELECT {selected} FROM VALUES {values} AS v({names}){where}")

    def view(self, name, sql):
        self.spark.sql(sql).createOrReplaceTempView(name)
        self.names.append(name)

    def ask(self, sql):
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def end(self):
        for name in self.names:
            self.spark.catalog.dropTempView(name)
        self.names = []


engine = {"duckdb": DuckDb, "spark": Spark}[sys.argv[1]]()
for line in sys.stdin:
    case = json.loads(line)
    answers = []
    engine.begin(case["tables"])
    for name, sql in case["views"]:
        engine.view(name, sql)
    for sql in case["queries"]:
        try:
            answers.append({"rows": [[plain(value) for value in row] for row in engine.ask(sql)]})
        except engine.error as error:
            answers.append({"error": str(error).split("\n")[0]})
            if sys.argv[1] == "duckdb":
                # An error ends what was begun.
                engine.end()
                engine.begin(case["tables"])
                for name, view in case["views"]:
                    engine.view(name, view)
    engine.end()
    print(json.dumps({"name": case["name"], "answers": answers}), flush=True)
