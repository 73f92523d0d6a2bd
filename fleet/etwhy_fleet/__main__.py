"""`etwhy-fleet run | ask | compact`."""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import sys
import tempfile

from pyspark.sql import SparkSession

from . import job, questions
from .contract import KNOWLEDGE, Contract, ContractError
from .program import Program, ProgramError

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
CATALOG = "etwhy"


def arguments() -> argparse.ArgumentParser:
    """What the command line knows."""
    parser = argparse.ArgumentParser(prog="etwhy-fleet", description=__doc__)
    parser.add_argument("--warehouse", help="folder or URL of the tables; without it, the catalog `etwhy` is as spark-submit configures it")
    parser.add_argument("--program", default="etwhy", help="the program etwhy, on the driver and on each executor")
    parser.add_argument("--ship", action="store_true", help="send the program to the executors")
    parser.add_argument("--namespace", default="fleet")
    words = parser.add_subparsers(dest="word", required=True)
    run = words.add_parser("run", help="read what is new in an inbox")
    run.add_argument("inbox", nargs="+", help="folders, traces, patterns; paths that the executors see too")
    run.add_argument("--batch", type=int, default=64, help="recordings that are committed together")
    run.add_argument("--timeout", type=int, default=1800, metavar="SECONDS")
    run.add_argument("--memory", default="8GB", help="most memory for one recording")
    run.add_argument("--option", action="append", default=[], help="an option of `etwhy fleet run`, as --option=--symbols=/symbols")
    ask = words.add_parser("ask", help="ask a view")
    ask.add_argument("view")
    ask.add_argument("--as-of", metavar="BATCH|EXTRACT", help="as it was after that batch, or after the batch of that reading")
    ask.add_argument("--top", type=int, default=20)
    ask.add_argument("--csv", action="store_true")
    words.add_parser("compact", help="make large files of the small ones of many batches")
    return parser


def session(warehouse: str | None) -> SparkSession:
    """Spark with the catalog `etwhy`. What spark-submit set stays."""
    # In local mode the executors are this machine; a cluster configures its own Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("etwhy-fleet").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    if warehouse is not None:
        url = warehouse if "://" in warehouse else pathlib.Path(warehouse).absolute().as_uri()
        for key, value in [("", "org.apache.iceberg.spark.SparkCatalog"), (".type", "hadoop"), (".warehouse", url)]:
            builder = builder.config(f"spark.sql.catalog.{CATALOG}{key}", value)
        builder = builder.config("spark.jars.packages", ICEBERG)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(given: list[str] | None = None) -> int:
    """The program. Exit codes as etwhy's: 0 done, 1 some traces could not be read wholly, 2 asked wrongly."""
    args = arguments().parse_args(given)
    space = f"{CATALOG}.{args.namespace}"
    program = Program(args.program, tuple(getattr(args, "option", [])))
    try:
        with tempfile.TemporaryDirectory() as folder:
            program.empty_store(pathlib.Path(folder))
            store = pathlib.Path(folder) / "store"
            contract, views = Contract.read(store), questions.views(store)
            spark = session(args.warehouse)
            if args.word == "run":
                return read(spark, args, space, program, contract, store)
            if args.word == "compact":
                for name, files in job.compact(spark, space, contract).items():
                    print(f"{name}: {files} files")
                return 0
            return answer(spark, args, space, contract, views)
    except (ProgramError, ContractError, LookupError) as error:
        print(f"etwhy-fleet: {error}", file=sys.stderr)
        return 2


def read(
    spark: SparkSession, args: argparse.Namespace, space: str, program: Program, contract: Contract, store: pathlib.Path
) -> int:
    """The word `run`."""
    shipped = None
    if args.ship:
        spark.sparkContext.addFile(args.program)
        shipped = pathlib.Path(args.program).name
    settings = job.Settings(space, program, shipped, args.batch, args.timeout, args.memory)
    before = job.next_batch(spark, space) if spark.catalog.tableExists(f"{space}.run") else 1
    done = job.run(spark, settings, contract, args.inbox)
    job.knowledge(spark, space, str(store / f"{KNOWLEDGE}.parquet"), contract)
    for line in done.changed:
        print(line)
    print(f"{done.planned} recordings read in {done.batches} batches, {done.known} known, {done.resumed} batches continued")
    rows = spark.sql(f"SELECT outcome, count(*) AS n FROM {space}.run WHERE batch >= {before} GROUP BY outcome ORDER BY n DESC").collect()
    for row in rows:
        print(f"{row.n:>8} {row.outcome}")
    return 0 if all(row.outcome in ("read", "copy") for row in rows) else 1


def answer(
    spark: SparkSession, args: argparse.Namespace, space: str, contract: Contract, views: dict[str, str]
) -> int:
    """The word `ask`."""
    as_of = args.as_of
    if as_of is not None:
        as_of = int(as_of) if as_of.isdecimal() and len(as_of) < 16 else questions.batch_of(spark, space, as_of)
    questions.open_tables(spark, space, contract, views, as_of)
    rows = questions.ask(spark, views, args.view).limit(args.top)
    if args.csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(rows.columns)
        writer.writerows(rows.collect())
    else:
        rows.show(args.top, truncate=60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
