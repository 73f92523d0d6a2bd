"""What the program etwhy says and does: the only code that starts it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field


class ProgramError(Exception):
    """etwhy could not be started, or says that it was asked wrongly."""


@dataclass(frozen=True)
class Unit:
    """A recording that is read by one process."""

    trace_id: str
    settings_id: str
    content_ids: tuple[str, ...]
    files: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class Program:
    """etwhy with the options that decide what is found (`--symbols`, `--machine`, …)."""

    path: str = "etwhy"
    options: tuple[str, ...] = field(default=())

    def _run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self.path, *arguments], input=given, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise ProgramError(f"{self.path} cannot be started: {error}") from error

    def plan(self, inbox: list[str]) -> list[Unit]:
        """The recordings of an inbox, the largest first."""
        done = self._run("fleet", "plan", *self.options, "--", "-", given="\n".join(inbox))
        if done.returncode != 0:
            raise ProgramError(done.stderr.strip())
        lines = map(json.loads, done.stdout.splitlines())
        return [
            Unit(u["trace_id"], u["settings_id"], tuple(u["content_ids"]), tuple(u["files"]), u["bytes"]) for u in lines
        ]

    def empty_store(self, folder: pathlib.Path) -> None:
        """Contract, knowledge and views, as this program has them."""
        # An inbox without a trace: the store is made before that is said.
        inbox = folder / "inbox"
        inbox.mkdir(parents=True)
        done = self._run("fleet", "run", str(inbox), "-o", str(folder / "store"), "--quiet", *self.options)
        if not (folder / "store" / "contract.json").exists():
            raise ProgramError(done.stderr.strip())

    def read(self, unit: Unit, seconds: int, memory: str) -> Iterator[tuple[str, bytes]]:
        """The rows of a recording: table and Parquet file. Never fails because of a trace: table `run` says what became of it."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="etwhy-"))
        try:
            done = self._run(
                *("fleet", "run", "--output", str(folder / "store"), "--jobs", "1", "--timeout", str(seconds)),
                *("--memory", memory, "--quiet", *self.options, "--", *unit.files),
            )
            batches = sorted((folder / "store" / "batches").glob("*"))
            if not batches:
                raise ProgramError(f"{', '.join(unit.files)}: {done.stderr.strip() or done.returncode}")
            for file in batches[0].glob("*.parquet"):
                yield file.stem, file.read_bytes()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def on_executor(program: Program, shipped: str | None) -> Program:
    """The program where a task runs: the file that Spark shipped, or the same path as on the driver."""
    if shipped is None:
        return program
    from pyspark import SparkFiles

    path = SparkFiles.get(shipped)
    os.chmod(path, 0o755)
    return Program(path, program.options)
