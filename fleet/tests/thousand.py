"""A thousand traces: everything that `etwhy fleet` promises about many, tried on many.

    scripts/test-fleet --thousand            about 20 minutes and 3 GB on two processors
    python thousand.py PROGRAM FOLDER [--scale 0.1] [--keep]

Writes traces of 200 machines in 4 models, with a driver whose version 2.0 costs 3 % more, a machine with a driver that takes a third of its time, and a product
that is on every machine; adds the stories, the findings' scenarios, the public corpus (ETWHY_CORPUS), damaged files, a file whose
process hangs and one that unpacks to 40 GB. Reads them with a runner and readers that are killed at random moments, and checks the ledger, the rows, the
answers and what was planted. Prints one line for each claim with its figures; ends with 1 if one is false.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb

ROOT = pathlib.Path(__file__).resolve().parents[2]
VIEWS = ROOT / "crates/faces/fleet/views"
MODELS = [("Contoso", "Book 1"), ("Contoso", "Book 2"), ("Fabrikam", "T"), ("Fabrikam", "X")]
DAYS = ["2026-01-04", "2026-01-13", "2026-01-26", "2026-02-03"]
CHANGED = 2
OUTLIER = 17
# Traces whose rows are compared with what `why` says of them alone.
SAMPLE = 120
TYPES = {"i64": "bigint", "i32": "integer", "f64": "double", "bool": "boolean", "text": "varchar", "long text": "varchar"}

# As in crates/faces/fleet/src/inbox.rs.
ENDINGS = (".etl", ".etl.gz", ".etl.zst", ".etl.lz4", ".etl.xz", ".etl.bz2", ".zip", ".7z", ".diagsession")

failed: list[str] = []


def claim(true: bool, what: str) -> None:
    print(("ok     " if true else "FALSE  ") + what, flush=True)
    if not true:
        failed.append(what)


def planted(machine: int, run: int, rng: random.Random) -> str:
    """A scenario of a planted machine: shares of two processors' time, in 10 s."""
    maker, model = MODELS[machine % 4]
    after = run >= CHANGED
    near = lambda share, noise: share * (1 + rng.gauss(0, noise))
    own = 0.04 + 0.02 * (machine % 5)
    parts = [
        ("app.exe", "app.exe!work", near(0.10, 0.05), ""),
        ("app.exe", "nt!NtWriteFile;newdrv.sys!Filter", near(own * (1.03 if after else 1.0), 0.01), ""),
        ("service.exe", "nt!NtReadFile;everywhere.sys!Scan", near(0.20, 0.03), ""),
    ]
    if machine == OUTLIER:
        parts.append(("app.exe", "nt!NtWriteFile;rogue.sys!Spin", near(0.33, 0.02), ""))
    text = f"""[machine]
name = "PC-{machine:03}"
cpus = 2
duration = "10s"
start = "{DAYS[run]}T0{run + 6}:{machine % 60:02}:00Z"
platform = ["{maker}", "{model}"]
os = "10.0"
build = 22631
idle_samples = false
seed = {machine * 10 + run + 1}

"""
    for name, version in [("newdrv.sys", "2.0.0.0" if after else "1.0.0.0"), ("everywhere.sys", "8.0.0.0"), ("rogue.sys", "1.0.0.0")]:
        if name != "rogue.sys" or machine == OUTLIER:
            text += f'[[image]]\nname = "{name}"\nversion = "{version}"\ncompany = "Maker of {name}"\nkernel = true\n\n'
    text += '[[process]]\nname = "app.exe"\nthreads = ["main"]\n\n[[process]]\nname = "service.exe"\nthreads = ["main"]\n\n'
    for process, frames, share, _ in parts:
        text += f'[[samples]]\nprocess = "{process}"\nbusy = {share:.5f}\nstacks = [{{ weight = 1, frames = "ntdll.dll!RtlUserThreadStart;{frames}" }}]\n\n'
    return text


def write_traces(program: str, inbox: pathlib.Path, scale: float) -> int:
    """Everything that is read; how many files."""
    rng = random.Random(24)
    scenarios = inbox.parent / "scenarios"
    scenarios.mkdir(parents=True)
    jobs: list[list[str]] = []
    for machine in range(max(8, int(200 * scale))):
        (inbox / f"pc{machine:03}").mkdir(parents=True)
        for run in range(4):
            file = scenarios / f"{machine:03}-{run}.toml"
            file.write_text(planted(machine, run, rng))
            jobs.append([str(file), "-o", str(inbox / f"pc{machine:03}" / f"{run}.etl")])
    (inbox / "shapes").mkdir()
    for file in sorted([*(ROOT / "scenarios").glob("*.toml"), *(ROOT / "scenarios/findings").glob("*.toml")]):
        jobs.append([str(file), "-o", str(inbox / "shapes" / f"{file.stem}.etl"), "--scale", "0.01"])
    # Not every scenario can be written so small: those that cannot are left out.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: subprocess.run([program, "synth", *job], capture_output=True, check=False), jobs))
    for sidecar in [*inbox.rglob("*.truth.json"), *inbox.rglob("*.loggers.txt")]:
        sidecar.unlink()
    corpus = pathlib.Path(os.environ.get("ETWHY_CORPUS", "/nowhere")) / "etl"
    if corpus.is_dir():
        shutil.copytree(corpus, inbox / "corpus")
    whole = sorted((inbox / "shapes").glob("*.etl"))
    damaged = inbox / "damaged"
    damaged.mkdir()
    for n in range(max(8, int(60 * scale))):
        data = bytearray(rng.choice(whole).read_bytes())
        how = n % 4
        if how == 0:
            data = data[: rng.randrange(1, len(data))]
        elif how == 1:
            for _ in range(200):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == 2:
            at = rng.randrange(len(data))
            data[at : at + 70_000] = bytes(len(data[at : at + 70_000]))
        else:
            data = bytearray(rng.randbytes(rng.randrange(100_000)))
        (damaged / f"{n:03}.etl").write_bytes(data)
    (damaged / "empty.etl").write_bytes(b"")
    (damaged / "text.etl").write_text("this is no trace\n")
    # 64 MB of nothing, 640 times.
    (damaged / "bomb.etl.gz").write_bytes(gzip.compress(bytes(64 << 20), 9) * 640)
    # Its reader is stopped (see `Trouble`): it hangs.
    shutil.copy(whole[0], damaged / "hangs.etl")
    with open(damaged / "hangs.etl", "ab") as file:
        file.write(bytes(65536))
    os.mkfifo(damaged / "pipe.etl")
    shutil.copy(inbox / "pc000/0.etl", inbox / "pc000/copy.etl")
    return len(traces_in(inbox))


def traces_in(inbox: pathlib.Path) -> set[str]:
    """Files that a run has to account for: regular ones that are called like traces or archives."""
    return {str(file) for file in inbox.rglob("*") if file.is_file() and file.name.lower().endswith(ENDINGS)}


def children(of: int) -> list[tuple[int, str]]:
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(stat[1]) == of:
                found.append((int(folder.name), (folder / "cmdline").read_text()))
        except (OSError, ValueError, IndexError):
            continue
    return found


class Run:
    def __init__(self, program: str, inbox: pathlib.Path, store: pathlib.Path, more: list[str]):
        line = [program, "fleet", "run", str(inbox), "-o", str(store), "--quiet", "--json", "--timeout", "60", "--memory", "1GB", *more]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)

    def trouble(self, rng: random.Random, until: float | None, kills: bool) -> bool:
        """Stops the reader of `hangs.etl`, kills others now and then, and the runner at `until`. False if the runner ended before."""
        while self.process.poll() is None:
            if until is not None and time.time() >= until:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
                return True
            for pid, line in children(self.process.pid):
                try:
                    if "hangs.etl" in line and "identify" not in line:
                        os.kill(pid, signal.SIGSTOP)
                    elif kills and "extract" in line and rng.random() < 0.004:
                        os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
        return False

    def said(self) -> dict:
        out, _ = self.process.communicate()
        return json.loads(out)


def opened(store: pathlib.Path) -> tuple[duckdb.DuckDBPyConnection, dict]:
    """The store in DuckDB: tables with rows of current readings, `run` and `input` whole."""
    connection = duckdb.connect()
    contract = json.loads((store / "contract.json").read_text())
    tables = {table["name"]: table["columns"] for table in contract["tables"]}
    for name, columns in tables.items():
        if name == "knowledge":
            source = f"select * from read_parquet('{store}/knowledge.parquet')"
        elif list((store / "batches").glob(f"*/{name}.parquet")):
            source = f"select * from read_parquet('{store}/batches/*/{name}.parquet', union_by_name = true)"
            # Rows of before a column was known have none.
            there = connection.sql(source).columns
            new = [f"cast(null as {TYPES[c['type']]}) as \"{c['name']}\"" for c in columns if c["name"] not in there]
            source = source.replace("*", ", ".join(["*", *new]), 1)
        else:
            source = "select " + ", ".join(f"cast(null as {TYPES[c['type']]}) as \"{c['name']}\"" for c in columns) + " where false"
        connection.sql(f'create table "{name}" as {source}')
    connection.sql(f"create table current_reading as {(VIEWS / 'current.sql').read_text()}")
    for name in tables:
        if name not in ("run", "input", "knowledge"):
            connection.sql(f'delete from "{name}" as a where not exists (select 1 from current_reading as c where c.trace_id = a.trace_id and c.extract_id = a.extract_id)')
    return connection, tables


def comparable(rows: list[tuple]) -> list[str]:
    # The digits in which sums depend on their order are not compared.
    cell = lambda value: "" if value is None else f"{float(value):.8e}" if isinstance(value, (int, float)) else str(value)
    return sorted(" | ".join(cell(float(v)) if v.__class__.__name__ == "Decimal" else cell(v) for v in row) for row in rows)


def same_in_sqlite(connection: duckdb.DuckDBPyConnection, tables: dict) -> tuple[int, list[str]]:
    """Rows of all views, and views that SQLite answers otherwise."""
    other = sqlite3.connect(":memory:")
    for name, columns in tables.items():
        names = ", ".join('"' + column["name"] + '"' for column in columns)
        other.execute(f'create table "{name}" ({names})')
        rows = connection.sql(f'select {names} from "{name}"').fetchall()
        other.executemany(f'insert into "{name}" values ({", ".join("?" * len(columns))})', rows)
    for column in ("trace_id", "machine_id"):
        for name in ("bill", "process", "finding", "finding_hit", "module", "machine", "recording"):
            other.execute(f'create index "{name}_{column}" on "{name}" ("{column}")')
    count, different = 0, []
    for file in sorted(VIEWS.glob("*.sql")):
        if file.stem == "current":
            continue
        sql = file.read_text()
        ours = comparable(connection.sql(sql).fetchall())
        theirs = comparable(other.execute(sql).fetchall())
        count += len(ours)
        if ours != theirs:
            different.append(f"{file.stem} ({len(ours)} and {len(theirs)} rows)")
    return count, different


def near(one, other) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-9 * max(1.0, abs(one))
    return one == other


def why_agrees(program: str, connection: duckdb.DuckDBPyConnection, sample: list[str]) -> tuple[int, list[str]]:
    """Findings, culprits and lines of the bill of these traces, and those that differ from what `why` says of the trace alone."""
    compared, wrong = 0, []
    for trace in sample:
        files = [file for (file,) in connection.execute("select file from trace_file where trace_id = ? order by file", [trace]).fetchall()]
        out = subprocess.run([program, "why", "--json", "--quiet", "--merge", *files], capture_output=True, text=True, check=False).stdout
        why = json.loads(out)
        rows = lambda table, columns: [dict(zip(columns, row)) for row in connection.execute(f"select {', '.join(columns)} from {table} where trace_id = ?", [trace]).fetchall()]
        findings = {row["finding_id"]: row for row in rows("finding", ["finding_id", "answer", "severity", "hits"])}
        hits = {(row["finding_id"], row["number"]): row for row in rows("finding_hit", ["finding_id", "number", "culprit", "severity", "headline", "cost_ns", "share"])}
        bill = {(row["kind"], row["part"], row["culprit"], row["why"]): row for row in rows("bill", ["kind", "part", "culprit", "why", "total_cpu_ns", "share_percent", "imposed_wait_ns", "energy_j"])}
        said = {finding["id"]: finding for finding in why["findings"]}
        if set(said) != set(findings):
            wrong.append(f"{files}: findings")
        for name, finding in said.items():
            compared += 1
            row = findings.get(name, {})
            if (row.get("answer"), row.get("severity"), row.get("hits")) != (finding["answer"], finding.get("severity"), len(finding.get("hits") or [])):
                wrong.append(f"{files}: {name}")
            for number, hit in enumerate(finding.get("hits") or []):
                compared += 1
                row = hits.get((name, number), {})
                if not all(near(row.get(key), hit.get(key)) for key in ("culprit", "severity", "headline", "cost_ns", "share")):
                    wrong.append(f"{files}: {name} {number}")
        for line in why["bill"]:
            compared += 1
            row = bill.get((line["kind"], line["part"], line["culprit"], line["why"]), {})
            if not all(near(row.get(key), line.get(key)) for key in ("total_cpu_ns", "share_percent", "imposed_wait_ns", "energy_j")):
                wrong.append(f"{files}: bill {line['kind']} {line['culprit']}")
    return compared, wrong


def asked(program: str, *words: str) -> list[dict]:
    out = subprocess.run([program, "fleet", *words, "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)["rows"]


def planted_is_found(program: str, connection: duckdb.DuckDBPyConnection, store: pathlib.Path, machines: int) -> None:
    rank = asked(program, "rank", "drivers", str(store))
    order = [row["culprit"] for row in rank]
    everywhere = next((row for row in rank if row["culprit"] == "everywhere.sys"), None)
    # Other shapes have drivers, too: of the planted ones this is the order.
    own = [name for name in order if name in ("everywhere.sys", "newdrv.sys", "rogue.sys")]
    claim(own == ["everywhere.sys", "newdrv.sys", "rogue.sys"] and everywhere["machines"] == machines, f"rank: {own}, everywhere.sys on {everywhere and everywhere['machines']} machines")
    nobody = {"[idle]", "[unattributed]", "[not observed]", "[no driver]"}
    claim(not nobody & set(order), "no idle or unattributed time in the rank")
    changes = asked(program, "regressions", str(store))
    certain = [row for row in changes if row.get("certain")]
    said = [(row["culprit"], row.get("ratio"), row.get("ratio_low"), row.get("ratio_high"), row["machines"]) for row in certain]
    right = len(certain) == 1 and certain[0]["culprit"] == "newdrv.sys" and (certain[0].get("ratio_low") or 9) <= 1.03 <= (certain[0].get("ratio_high") or 0)
    claim(right, f"regressions: {said}")
    found = asked(program, "outliers", str(store))
    names = {(row.get("computer") or row["machine_id"], row["culprit"]) for row in found}
    # Other shapes record no model and are compared with each other: of the planted machines this is the outlier, if it has enough peers.
    own = {(machine, culprit) for machine, culprit in names if machine.startswith("PC-")}
    enough = machines // len(MODELS) > 8
    claim({machine for machine, _ in own} == ({f"PC-{OUTLIER:03}"} if enough else set()) and ((f"PC-{OUTLIER:03}", "rogue.sys") in own) == enough, f"outliers among the planted machines: {sorted(own)}")
    coverage = asked(program, "coverage", str(store))
    counted = dict(connection.sql("select finding_id, sum(case when answer <> 'cannot_tell' then 1 else 0 end) from finding group by 1").fetchall())
    claim(all(row["could_tell"] == int(counted[row["finding_id"]]) for row in coverage), f"coverage of {len(coverage)} findings equals a count of the answers")


def cpu_seconds(line: list[str]) -> float:
    """CPU time of a process."""
    quiet = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_WRONLY, 0) for n in (1, 2)]
    _, _, used = os.wait4(os.posix_spawn(line[0], line, os.environ, file_actions=quiet), 0)
    return used.ru_utime + used.ru_stime


def costs_of_reading(program: str, folder: pathlib.Path, small: pathlib.Path) -> None:
    """What extracting a trace costs beside `why`, interleaved, least of five; and what a large fleet would."""
    large = folder / "large.etl"
    subprocess.run([program, "synth", str(ROOT / "scenarios/openmp_spin.toml"), "--scale", "0.6", "-o", str(large), "-q"], check=True)
    for trace in (small, large):
        part, why, extract = folder / "part", [], []
        for _ in range(5):
            why.append(cpu_seconds([program, "why", "--json", "--quiet", "--threads", "1", str(trace)]))
            shutil.rmtree(part, ignore_errors=True)
            extract.append(cpu_seconds([program, "fleet", "extract", "--settings-id", "cost", "--merge", "--threads", "1", "-o", str(part), str(trace)]))
        size = trace.stat().st_size / 1e6
        print(f"       {trace.name} of {size:.1f} MB: extracted in {min(extract):.3f} s of CPU time, why takes {min(why):.3f} s: {min(extract) / min(why):.2f} times (goal 1.1)")
    print(f"       100,000 traces of 300 MB at that rate: {min(extract) / size * 300 * 100_000 / 3600:,.0f} core-hours")


def costs_of_ranking(connection: duckdb.DuckDBPyConnection, folder: pathlib.Path) -> None:
    """The ranking of 100,000 traces: the rows of these over and over, as Parquet files."""
    traces = connection.sql("select count(*) from recording").fetchall()[0][0]
    copies = -(-100_000 // traces)
    other = duckdb.connect()
    other.sql("set threads = 2")
    for name in ("bill", "machine", "recording", "process", "knowledge"):
        file = folder / f"{name}.parquet"
        own = [f"{c} || '-' || n as {c}" if c in ("trace_id", "machine_id") else f'"{c}"' for c in connection.table(name).columns]
        rows = f"select {', '.join(own)} from {name}, range({copies if name != 'knowledge' else 1}) as r (n)"
        connection.sql(f"copy ({rows}) to '{file}' (format parquet, compression zstd)")
        other.sql(f"create view {name} as select * from read_parquet('{file}')")
    least = (9e9, 9e9)
    for _ in range(3):
        wall, cpu = time.time(), time.process_time()
        other.sql((VIEWS / "rank.sql").read_text()).fetchall()
        least = min(least, (time.time() - wall, time.process_time() - cpu))
    print(f"       {traces * copies:,} traces are ranked in {least[0]:.2f} s on two threads, {least[1]:.2f} s of CPU time (goal 2 s)")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    program = str(pathlib.Path(args.program).resolve())
    inbox, store = args.folder / "inbox", args.folder / "store"
    began = time.time()
    files = len(traces_in(inbox)) if inbox.exists() else write_traces(program, inbox, args.scale)
    print(f"       {files} files, written in {time.time() - began:.0f} s")
    shutil.rmtree(store, ignore_errors=True)

    rng = random.Random(args.kills)
    killed, began = 0, time.time()
    for _ in range(args.kills):
        run = Run(program, inbox, store, ["--batch", "16"])
        killed += run.trouble(rng, time.time() + rng.uniform(0.5, 15), kills=True)
    run = Run(program, inbox, store, ["--batch", "16"])
    run.trouble(rng, None, kills=False)
    run.said()
    print(f"       the runner was killed {killed} times and then let go, in {time.time() - began:.0f} s")
    # Readers that were killed are rows of the ledger; what failed may be tried again.
    run = Run(program, inbox, store, ["--batch", "16", "--retry"])
    run.trouble(rng, None, kills=False)
    run.said()

    connection, tables = opened(store)
    expected = traces_in(inbox)
    given = {path for (path,) in connection.sql("select path from input").fetchall()}
    claim(given == expected, f"{len(given)} of {len(expected)} files are in the ledger; missing {sorted(expected - given)[:3]}, other {sorted(given - expected)[:3]}")
    twice = connection.sql("select count(*) from (select extract_id from run where outcome in ('read', 'in_part') group by 1 having count(*) > 1)").fetchall()[0][0]
    claim(twice == 0, f"{twice} readings are there twice")
    rows = connection.sql("select count(*), count(distinct trace_id) from recording").fetchall()[0]
    claim(rows[0] == rows[1], f"{rows[0]} traces have rows")
    last = dict(connection.sql("select outcome, count(*) from (select outcome, row_number() over (partition by trace_id order by batch desc, outcome) as n from run) where n = 1 group by 1 order by 1").fetchall())
    print(f"       what became of each: {last}")
    reason = lambda name: [r[0] for r in connection.execute("select outcome from run where path like ? order by batch desc", [f"%{name}"]).fetchall()]
    claim(reason("hangs.etl")[:1] == ["timeout"], f"hangs.etl: {reason('hangs.etl')}")
    bomb = reason("bomb.etl.gz")
    claim(bool(bomb) and bomb[0] in ("not_a_trace", "failed", "memory", "timeout", "in_part"), f"bomb.etl.gz: {bomb}")
    cpu, size = connection.sql("select sum(cpu_ns) / 1e9, sum(size_bytes) from run where outcome in ('read', 'in_part')").fetchall()[0]
    stored = sum(file.stat().st_size for file in (store / "batches").rglob("*.parquet"))
    print(f"       {float(size) / 1e6:.0f} MB in {float(cpu):.0f} s of CPU time; the store has {stored / 1e3 / rows[0]:.1f} KB per trace in {len(list((store / 'batches').iterdir()))} batches")

    before = sorted((str(f), f.stat().st_mtime_ns) for f in (store / "batches").rglob("*"))
    run = Run(program, inbox, store, [])
    run.trouble(rng, None, kills=False)
    said = run.said()
    after = sorted((str(f), f.stat().st_mtime_ns) for f in (store / "batches").rglob("*"))
    claim(said["outcomes"] == {} and said["known"] == said["files"] and before == after, f"a second run does nothing: {said['known']} of {said['files']} known")

    traces = [trace for (trace,) in connection.sql("select trace_id from recording order by trace_id").fetchall()]
    compared, wrong = why_agrees(program, connection, rng.sample(traces, min(SAMPLE, len(traces))))
    claim(not wrong, f"{compared} findings, culprits and lines of bills of {min(SAMPLE, len(traces))} traces are those of etwhy why; different: {wrong[:3]}")
    count, different = same_in_sqlite(connection, tables)
    claim(not different, f"{count} rows of all views are the same in SQLite; different: {different}")
    own = {(tuple(sorted((k, f"{v:.8e}" if isinstance(v, (int, float)) and not isinstance(v, bool) else str(v)) for k, v in row.items()))) for row in asked(program, "rank", "drivers", str(store))}
    ranked = connection.sql((VIEWS / "rank.sql").read_text())
    theirs = {tuple(sorted((k, f"{float(v):.8e}" if isinstance(v, (int, float)) or v.__class__.__name__ == "Decimal" else str(v)) for k, v in zip(ranked.columns, row))) for row in ranked.fetchall() if row[0] == "driver"}
    claim(own == theirs, f"etwhy fleet rank drivers gives the {len(theirs)} rows of DuckDB")
    planted_is_found(program, connection, store, max(8, int(200 * args.scale)))
    costs_of_reading(program, args.folder, inbox / "pc000/1.etl")
    costs_of_ranking(connection, args.folder)
    if not args.keep:
        shutil.rmtree(args.folder)
    print(f"{len(failed)} claims are false" if failed else "all claims are true")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
