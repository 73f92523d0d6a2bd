"""Spark and Iceberg hold the same rows as a store of `etwhy fleet run`, whatever is killed in between, and DuckDB gives the same answers.

Run by `scripts/test-fleet`; needs ETWHY (the program), a folder of traces, and PySpark, Iceberg's jar, DuckDB.
"""

from __future__ import annotations

import decimal
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys

import pytest

from etwhy_fleet import job, questions
from etwhy_fleet.__main__ import CATALOG
from etwhy_fleet.contract import Contract, ContractError, make
from etwhy_fleet.program import Program, ProgramError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["ETWHY"]
SCENARIOS = ["dpc_flood", "openmp_spin", "antivirus_opens", "antivirus_opens_excluded"]


@pytest.fixture(scope="session")
def inbox(tmp_path_factory):
    """Traces of several machines, a copy, a truncated one and one that is no trace."""
    folder = tmp_path_factory.mktemp("inbox")
    for name in SCENARIOS:
        text = ROOT / "scenarios" / f"{name}.toml"
        subprocess.run([PROGRAM, "synth", text, "--scale", "0.02", "-o", folder / f"{name}.etl", "-q"], check=True)
    shutil.copy(folder / "openmp_spin.etl", folder / "copy.etl")
    # Of a trace that is not there: the beginning of one that is would be a copy.
    other = folder / "other.etl"
    subprocess.run([PROGRAM, "synth", ROOT / "scenarios/dpc_flood.toml", "--scale", "0.03", "-o", other, "-q"], check=True)
    (folder / "cut.etl").write_bytes(other.read_bytes()[: other.stat().st_size // 2])
    other.unlink()
    (folder / "text.etl").write_text("no trace")
    for file in folder.glob("*.json"):
        file.unlink()
    return folder


@pytest.fixture(scope="session")
def store(inbox, tmp_path_factory):
    """The same traces, read without Spark."""
    path = tmp_path_factory.mktemp("store") / "store"
    subprocess.run([PROGRAM, "fleet", "run", inbox, "-o", path, "-q"], check=False)
    return path


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("test")
    settings = {
        "spark.jars": os.environ["ICEBERG_JAR"],
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": tmp_path_factory.mktemp("warehouse").as_uri(),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.ansi.enabled": "true",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


def plain(value):
    """A value as the engines agree on it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


def comparable(rows):
    """Rows without their order, numbers to nine digits."""
    text = lambda v: f"{v:.9g}" if isinstance(v, float) and math.isfinite(v) else str(v)
    return sorted(" | ".join(text(plain(v)) for v in row) for row in rows)


def answers(spark, space, contract, views):
    """All views, as Spark answers them."""
    questions.open_tables(spark, space, contract, views)
    return {name: questions.ask(spark, views, name) for name in views}


def rows_of(spark, space, contract):
    """How many rows each table has."""
    return {name: spark.table(f"{space}.{name}").count() for name in contract.data()}


def test_spark_duckdb_and_the_store_say_the_same(spark, inbox, store):
    space = f"{CATALOG}.same"
    contract, views = Contract.read(store), questions.views(store)
    done = job.run(spark, job.Settings(space, Program(PROGRAM), batch=2), contract, [str(inbox)])
    job.knowledge(spark, space, str(store / "knowledge.parquet"), contract)
    assert (done.planned, done.batches, done.known) == (6, 3, 0)
    query = ROOT / "tests" / "python" / "query_store.py"
    said = subprocess.run(
        [sys.executable, query, store, ROOT / "crates/faces/fleet/views"], check=True, capture_output=True, text=True
    )
    duckdb, compared = json.loads(said.stdout), 0
    for name, table in answers(spark, space, contract, views).items():
        # The program keeps the copy in its ledger; here it was not new.
        expected, found = duckdb[name], [tuple(row) for row in table.collect()]
        assert table.columns == expected["columns"], name
        assert comparable(found) == comparable(expected["rows"]), name
        compared += len(found)
    assert compared > 200, compared
    again = job.run(spark, job.Settings(space, Program(PROGRAM)), contract, [str(inbox)])
    assert (again.planned, again.batches, again.known) == (0, 0, 6)
    before = rows_of(spark, space, contract)
    files = job.compact(spark, space, contract)
    assert files["finding"] >= 2 and rows_of(spark, space, contract) == before


class Killed(Exception):
    """What a test does to a driver."""


def test_a_run_that_is_killed_loses_and_doubles_nothing(spark, inbox, store):
    contract = Contract.read(store)
    settings = job.Settings(f"{CATALOG}.killed", Program(PROGRAM), batch=3)
    dice, kills = random.Random(7), 0
    while True:
        left = dice.randrange(1, 30)

        def after(step):
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed(step)

        try:
            job.run(spark, settings, contract, [str(inbox)], after)
            break
        except Killed:
            kills += 1
            assert kills < 50
    whole = job.Settings(f"{CATALOG}.whole", Program(PROGRAM))
    job.run(spark, whole, contract, [str(inbox)])
    assert kills >= 2
    assert rows_of(spark, settings.space, contract) == rows_of(spark, whole.space, contract)
    ids = lambda space: comparable(spark.table(f"{space}.run").select("trace_id", "extract_id", "outcome").collect())
    assert ids(settings.space) == ids(whole.space)


def test_the_contract_grows_and_never_shrinks(spark, store, tmp_path):
    space = f"{CATALOG}.grown"
    text = json.loads((store / "contract.json").read_text())
    young = json.loads(json.dumps(text))
    machine = next(t for t in young["tables"] if t["name"] == "machine")
    gone = machine["columns"].pop()
    narrow = next(c for t in young["tables"] for c in t["columns"] if c["type"] == "i64" and t["name"] == "finding_hit")
    narrow["type"] = "i32"
    read = lambda value: (tmp_path / "contract.json").write_text(json.dumps(value)) and Contract.read(tmp_path)
    assert make(spark, space, read(young)) == []
    changed = make(spark, space, read(text))
    assert f"{space}.machine.{gone['name']} is new" in changed and f"{space}.finding_hit.{narrow['name']} is wider" in changed
    # An older program goes on writing; a column that became something else is refused.
    assert make(spark, space, read(young)) == []
    machine["columns"][5]["type"] = "text" if machine["columns"][5]["type"] != "text" else "i64"
    with pytest.raises(ContractError, match=machine["columns"][5]["name"]):
        make(spark, space, read(young))


def test_as_it_was(spark, inbox, store, tmp_path):
    space = f"{CATALOG}.past"
    contract, views = Contract.read(store), questions.views(store)
    settings = job.Settings(space, Program(PROGRAM))
    one = tmp_path / "one"
    one.mkdir()
    shutil.copy(inbox / "openmp_spin.etl", one)
    job.run(spark, settings, contract, [str(one)])
    job.run(spark, settings, contract, [str(inbox)])
    first = spark.table(f"{space}.run").where("batch = 1").first()
    assert questions.batch_of(spark, space, first.extract_id) == 1
    questions.open_tables(spark, space, contract, views, as_of=1)
    assert spark.table("recording").count() == 1
    questions.open_tables(spark, space, contract, views)
    assert spark.table("recording").count() > 1
    with pytest.raises(LookupError):
        questions.batch_of(spark, space, "'; DROP TABLE run --")


def test_what_is_wrong_with_the_program_is_said():
    with pytest.raises(ProgramError, match="cannot be started"):
        Program("no/such/program").plan(["inbox"])
    with pytest.raises(ProgramError, match="no/such/folder"):
        Program(PROGRAM).plan(["no/such/folder"])
