"""A run: what is new is read by the executors and committed batch by batch.

A batch goes two ways. First its rows, as the Parquet files that etwhy wrote, become rows of the table `staging`, in one commit: what
was read is safe. Then each table of the contract takes its rows out of there, *replacing* those of the same batch, the ledger `run` last, and
the batch leaves `staging`. A run that was killed anywhere is continued by the next: a batch in `staging` is committed again,
which changes nothing that was there, and what is in neither is read. Nothing is lost, nothing doubled.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from .contract import BATCH, KNOWLEDGE, Contract, make
from .program import Program, Unit, on_executor

STAGING = StructType(
    [
        StructField("batch", LongType(), False),
        StructField("trace_id", StringType(), False),
        StructField("name", StringType(), False),
        StructField("file", BinaryType(), False),
    ]
)


@dataclass(frozen=True)
class Settings:
    """How a run reads."""

    space: str
    program: Program
    shipped: str | None = None
    batch: int = 64
    seconds: int = 1800
    memory: str = "8GB"


@dataclass
class Done:
    """What a run did."""

    planned: int = 0
    known: int = 0
    batches: int = 0
    resumed: int = 0
    changed: tuple[str, ...] = ()


def run(
    spark: SparkSession, settings: Settings, contract: Contract, inbox: list[str], after: Callable[[str], None] = lambda _: None
) -> Done:
    """Reads what is new in an inbox. `after` is told of each step, and may raise to stop there: tests do."""
    done = Done()
    done.changed = tuple(make(spark, settings.space, contract))
    staging = f"{settings.space}.staging"
    if not spark.catalog.tableExists(staging):
        spark.createDataFrame([], STAGING).writeTo(staging).using("iceberg").create()
    done.resumed = commit(spark, settings.space, contract, after)
    units = settings.program.plan(inbox)
    read = known(spark, settings.space)
    new = [u for u in units if any((content, u.settings_id) not in read for content in u.content_ids)]
    done.planned, done.known = len(new), len(units) - len(new)
    number = next_batch(spark, settings.space)
    for units in chunks(new, settings.batch):
        stage(spark, settings, number, units)
        after("staged")
        commit(spark, settings.space, contract, after)
        done.batches += 1
        number += 1
    return done


def chunks(units: list[Unit], size: int) -> Iterator[list[Unit]]:
    """Parts of a list."""
    return (units[at : at + size] for at in range(0, len(units), size))


def known(spark: SparkSession, space: str) -> set[tuple[str, str]]:
    """Contents that were read, with the settings they were read with. Copies are."""
    rows = spark.table(f"{space}.input").select("content_id", "settings_id").distinct().toLocalIterator()
    return {(row.content_id, row.settings_id) for row in rows}


def next_batch(spark: SparkSession, space: str) -> int:
    """The number of a new batch."""
    last = spark.table(f"{space}.run").agg(F.max("batch")).first()
    return (last[0] or 0) + 1


def stage(spark: SparkSession, settings: Settings, number: int, units: list[Unit]) -> None:
    """Reads recordings, each in a task of its own: a trace that kills its executor costs a retry of itself."""
    program, shipped, seconds, memory = settings.program, settings.shipped, settings.seconds, settings.memory

    def read(unit: dict) -> Iterator[tuple[int, str, str, bytes]]:
        here = on_executor(program, shipped)
        for name, file in here.read(Unit(**unit), seconds, memory):
            yield number, unit["trace_id"], name, bytes(file)

    tasks = spark.sparkContext.parallelize([asdict(unit) for unit in units], max(1, len(units)))
    rows = spark.createDataFrame(tasks.flatMap(read), STAGING)
    option = "snapshot-property.etwhy-batch"
    rows.coalesce(max(1, len(units) // 16)).writeTo(f"{settings.space}.staging").option(option, str(number)).append()


def commit(spark: SparkSession, space: str, contract: Contract, after: Callable[[str], None]) -> int:
    """Moves what is in `staging` to its tables. Returns the number of batches."""
    staging = spark.table(f"{space}.staging")
    batches = sorted(row.batch for row in staging.select("batch").distinct().collect())
    for number in batches:
        rows = staging.where(F.col("batch") == number)
        there = {row.name for row in rows.select("name").distinct().collect()}
        for name in contract.data():
            if name in there:
                table = decoded(rows.where(F.col("name") == name), contract.tables[name], number)
                write(table.coalesce(1), f"{space}.{name}", number)
                after(name)
        spark.sql(f"DELETE FROM {space}.staging WHERE batch = {number}")
        after("unstaged")
    return len(batches)


def write(rows: DataFrame, table: str, number: int) -> None:
    """The rows of a batch take the place of those that are there of the same batch."""
    writer = rows.writeTo(table).option("snapshot-property.etwhy-batch", str(number))
    writer.overwrite(F.col(BATCH.name) == number)


def decoded(files: DataFrame, schema: StructType, number: int) -> DataFrame:
    """Rows of Parquet files. Columns that a file does not have are null: an older etwhy wrote it."""
    types = {"bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    fields = [(column.name, types[column.dataType.simpleString()]) for column in schema]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column("file"):
                table = pq.read_table(io.BytesIO(file.as_py()))
                columns = []
                for name, kind in fields:
                    if name == BATCH.name:
                        columns.append(pa.array([number] * table.num_rows, pa.int64()))
                    elif name in table.column_names:
                        columns.append(table.column(name).cast(kind).combine_chunks())
                    else:
                        columns.append(pa.nulls(table.num_rows, kind))
                made = pa.Table.from_arrays(columns, names=[name for name, _ in fields])
                yield from made.to_batches()

    return files.select("file").mapInArrow(rows, schema)


def knowledge(spark: SparkSession, space: str, file: str, contract: Contract) -> None:
    """Who makes what, as this program knows it: replaced as a whole, so that new knowledge needs no new reading."""
    with open(file, "rb") as open_file:
        content = open_file.read()
    one = spark.createDataFrame([(bytearray(content),)], StructType([StructField("file", BinaryType(), False)]))
    decoded(one, contract.tables[KNOWLEDGE], 0).writeTo(f"{space}.{KNOWLEDGE}").overwrite(F.lit(True))


def compact(spark: SparkSession, space: str, contract: Contract) -> dict[str, int]:
    """Small files of many batches become large ones, sorted by trace. Returns the files that were rewritten, by table."""
    catalog, _, namespace = space.partition(".")
    rewritten = {}
    for name in contract.data():
        result = spark.sql(
            f"CALL {catalog}.system.rewrite_data_files(table => '{namespace}.{name}', strategy => 'sort', "
            "sort_order => 'trace_id', options => map('min-input-files', '2'))"
        ).first()
        rewritten[name] = result.rewritten_data_files_count
    return rewritten
