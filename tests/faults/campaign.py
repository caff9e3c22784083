"""One scenario on a disk that fails at its N-th change, and whether anything was lost or hidden."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from perfci.errors import PerfciError
from tests.faults.scenarios import HISTORY, Scenario, contents, records

SHIM = Path(__file__).with_name("shim.c")
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""A full disk and a full quota stay so; a bad sector fails once."""
_HANG_S = 120.0
_BESIDE = (HISTORY + "-", "other.sqlite-")
"""What SQLite keeps beside a database, until somebody opens it again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Which change failed, with what, and what was wrong after it."""

    error: str
    at: int
    what: str


@dataclass(slots=True)
class Outcome:
    """How many changes the command makes, what was tried, and what came of it."""

    changes: int = 0
    tried: int = 0
    refused: int = 0
    faults: list[Fault] = field(default_factory=list)


def built(folder: Path) -> Path:
    """Compile the shim and return it."""
    library = folder / "shim.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", SHIM, "-o", library, "-ldl"], check=True)
    return library


@dataclass(frozen=True, slots=True)
class Disk:
    """What lies below ``root`` is on it; ``count`` lies elsewhere."""

    library: Path
    root: Path
    count: Path

    def run(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        at: int,
        error: int,
    ) -> tuple[subprocess.CompletedProcess[str], int]:
        """Run perfci while change ``at`` fails (0: none); return how often it changed a file."""
        self.count.write_text("0", encoding="ascii")
        shim = {
            "LD_PRELOAD": str(self.library),
            "FAULTS_ROOT": str(self.root),
            "FAULTS_AT": str(at),
            "FAULTS_ERRNO": str(error),
            "FAULTS_COUNT": str(self.count),
            **({"FAULTS_ONCE": "1"} if error == errno.EIO else {}),
        }
        whole = [sys.executable, "-m", "perfci", *command]
        try:
            done = subprocess.run(
                whole, cwd=folder, env={**os.environ, **shim, **environment}, check=False,
                capture_output=True, text=True, timeout=_HANG_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(whole, -signal.SIGALRM, "", "")
        return done, int(self.count.read_text(encoding="ascii"))


class Campaign:
    """Runs of one scenario; each starts from the same state."""

    def __init__(self, scenario: Scenario, library: Path, folder: Path) -> None:
        self._scenario, self._library, self._folder = scenario, library, folder
        self._first = folder / "first"
        self._first.mkdir(parents=True)
        scenario.prepare(self._first)
        self._before = contents(self._first, scenario)
        self._records_before = records(self._first)
        done, self.changes = self._run(self._fresh(), 0, 0)
        self._code = done.returncode
        assert not done.stderr.count("Traceback"), done.stderr
        self._after = contents(self._place, scenario)
        self._records_after = records(self._place)
        self._names = {path.relative_to(self._place) for path in self._place.rglob("*")}

    def run(self, most: int, seed: int) -> Outcome:
        """Fail each change with each error, or ``most`` of them drawn at random."""
        every = [(error, at) for error in ERRORS for at in range(1, self.changes + 1)]
        chosen = every if len(every) <= most else Random(seed).sample(every, most)
        outcome = Outcome(self.changes)
        for error, at in sorted(chosen):
            done, _ = self._run(self._fresh(), at, error)
            outcome.tried += 1
            outcome.refused += done.returncode != self._code
            name = errno.errorcode[error]
            outcome.faults += [Fault(name, at, what) for what in self._wrong(done)]
        return outcome

    @property
    def _place(self) -> Path:
        return self._folder / "now"

    def _fresh(self) -> Path:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._first, self._place)
        return self._place

    def _run(
        self, folder: Path, at: int, error: int
    ) -> tuple[subprocess.CompletedProcess[str], int]:
        disk = Disk(self._library, folder, self._folder / "count")
        environment = {"PERFCI_CACHE_DIR": str(folder / "cache")}
        return disk.run(self._scenario.command, folder, environment, at, error)

    def _wrong(self, done: subprocess.CompletedProcess[str]) -> Iterator[str]:
        if done.returncode < 0:
            yield f"ended by {signal.Signals(-done.returncode).name}"
        if "Traceback" in done.stderr or "[internal]" in done.stderr:
            yield f"a traceback: {done.stderr.strip().splitlines()[-1]}"
        if done.returncode != self._code and "perfci: " not in done.stderr:
            yield f"exit code {done.returncode} without a word"
        now = contents(self._place, self._scenario)
        for name, text in now.items():
            if text not in (self._before[name], self._after[name]):
                yield f"{name} is neither what it was nor what it should be"
        if done.returncode == self._code and now != self._after:
            yield "said to be done, and isn't"
        yield from self._wrong_history(done.returncode)
        for path in self._place.rglob("*"):
            left = path.relative_to(self._place)
            if left not in self._names and not str(left).startswith((*_BESIDE, "cache")):
                yield f"left {left}"
        yield from self._wrong_again()

    def _wrong_history(self, code: int) -> Iterator[str]:
        try:
            now = records(self._place)
        except PerfciError as error:
            yield f"the history can't be read: {error}"
            return
        if code == self._code:
            sound = now == self._records_after
        elif self._scenario.bit_by_bit:
            fewer, more = sorted((set(self._records_before), set(self._records_after)), key=len)
            sound = fewer <= set(now) <= more
        else:
            sound = now in (self._records_before, self._records_after)
        if not sound or len(set(now)) < len(now):
            yield f"{len(now)} records, {len(self._records_before)} before"

    def _wrong_again(self) -> Iterator[str]:
        """On a sound disk the same command does it all."""
        done, _ = self._run(self._place, 0, 0)
        if done.returncode != self._code:
            yield f"again: exit code {done.returncode}: {done.stderr.strip()[-200:]}"
        elif contents(self._place, self._scenario) != self._after:
            yield "again: not the same"
        elif records(self._place) != self._records_after:
            yield "again: another history"
