"""Questions to the tables: the SQL files that SQLite and DuckDB answer too."""

from __future__ import annotations

import pathlib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .contract import KNOWLEDGE, Contract

LEDGERS = ("run", "input")


def views(store: pathlib.Path) -> dict[str, str]:
    """Name and text of each view that the program has."""
    return {file.stem: file.read_text("utf-8") for file in sorted((store / "views").glob("*.sql"))}


def batch_of(spark: SparkSession, space: str, extract_id: str) -> int:
    """The batch that brought a reading."""
    row = spark.table(f"{space}.run").where(F.col("extract_id") == extract_id).first()
    if row is None:
        raise LookupError(f"there is no reading {extract_id}")
    return row.batch


def open_tables(spark: SparkSession, space: str, contract: Contract, views: dict[str, str], as_of: int | None = None) -> None:
    """Tables of the contract as temporary views: rows of readings that count, as they were after batch `as_of`."""
    seen = "" if as_of is None else f" WHERE batch <= {as_of}"
    for name in contract.tables:
        where = "" if name == KNOWLEDGE else seen
        spark.sql(f"SELECT * FROM {space}.{name}{where}").createOrReplaceTempView(name)
    # Which readings count is asked of all rows, everything else of the current ones.
    current = spark.sql(views["current"]).localCheckpoint()
    current.createOrReplaceTempView("current")
    for name in contract.tables:
        if name in LEDGERS or name == KNOWLEDGE:
            continue
        spark.sql(
            f"SELECT /*+ BROADCAST(c) */ a.* FROM {space}.{name} AS a "
            f"JOIN current AS c ON c.trace_id = a.trace_id AND c.extract_id = a.extract_id{seen}"
        ).createOrReplaceTempView(name)


def ask(spark: SparkSession, views: dict[str, str], name: str) -> DataFrame:
    """The answer of a view."""
    if name == "current":
        return spark.table("current")
    if name not in views:
        raise LookupError(f"there is no view {name}; there are {', '.join(views)}")
    return spark.sql(views[name])
