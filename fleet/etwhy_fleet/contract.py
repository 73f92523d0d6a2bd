"""The contract as Iceberg tables: made, and grown when a newer program has more columns. Columns are never taken away or narrowed."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

TYPES: dict[str, DataType] = {
    "i64": LongType(),
    "i32": IntegerType(),
    "f64": DoubleType(),
    "bool": BooleanType(),
    "text": StringType(),
    "long text": StringType(),
}
# Every row says which batch brought it, so that a batch can be written again.
BATCH = StructField("batch", LongType(), False)
KNOWLEDGE = "knowledge"


class ContractError(Exception):
    """The tables are of a program that knows another contract."""


@dataclass(frozen=True)
class Contract:
    """Tables by name: columns with their documentation."""

    tables: dict[str, StructType]
    titles: dict[str, str]

    @staticmethod
    def read(store: pathlib.Path) -> Contract:
        """That of a store of `etwhy fleet run`."""
        tables, titles = {}, {}
        for table in json.loads((store / "contract.json").read_text("utf-8"))["tables"]:
            columns = [
                StructField(c["name"], TYPES[c["type"]], True, {"comment": c["doc"].split("\n")[0]})
                for c in table["columns"]
            ]
            if all(column.name != BATCH.name for column in columns):
                columns.append(BATCH)
            tables[table["name"]] = StructType(columns)
            titles[table["name"]] = table["title"]
        return Contract(tables, titles)

    def data(self) -> list[str]:
        """Tables with rows of traces, the ledger last: what it has is there."""
        rest = [name for name in self.tables if name not in (KNOWLEDGE, "run")]
        return [*rest, "run"]


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def make(spark: SparkSession, space: str, contract: Contract) -> list[str]:
    """Makes the tables that are missing and the columns that are new. Returns what was changed of tables that were there."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {space}")
    changed = []
    for name, columns in contract.tables.items():
        table = f"{space}.{name}"
        if not spark.catalog.tableExists(table):
            fields = ", ".join(
                f"`{c.name}` {c.dataType.simpleString()} COMMENT {quoted(c.metadata.get('comment', ''))}" for c in columns
            )
            spark.sql(
                f"CREATE TABLE {table} ({fields}) USING iceberg COMMENT {quoted(contract.titles[name])} "
                "TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd')"
            )
            continue
        changed += grow(spark, table, columns)
    return changed


def grow(spark: SparkSession, table: str, wanted: StructType) -> list[str]:
    """Adds and widens columns of a table that is there."""
    there = {column.name: column.dataType for column in spark.table(table).schema}
    changed = []
    for column in wanted:
        is_, was = column.dataType, there.get(column.name)
        if was is None:
            spark.sql(f"ALTER TABLE {table} ADD COLUMN `{column.name}` {is_.simpleString()}")
            changed.append(f"{table}.{column.name} is new")
        elif (was, is_) == (IntegerType(), LongType()):
            spark.sql(f"ALTER TABLE {table} ALTER COLUMN `{column.name}` TYPE bigint")
            changed.append(f"{table}.{column.name} is wider")
        elif was != is_ and (was, is_) != (LongType(), IntegerType()):
            raise ContractError(
                f"column {column.name} of {table} is {was.simpleString()}, and this etwhy has {is_.simpleString()}: "
                "write to another namespace"
            )
    return changed
