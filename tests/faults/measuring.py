"""Commands that measure, on a disk that fails: nothing measured is lost without a word.

The command's own changes fail, not those of git and of workers. Benchmarks are plain Python: a
session takes seconds. Each setting-up of a benchmark leaves a line on a sound disk, so that it is
known what had been measured.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfci.errors import PerfciError
from perfci.report.exporters import named
from perfci.report.reading import read_report
from tests.builders.project import NOISE_PASSES, Project
from tests.faults.campaign import Disk, Fault, Outcome
from tests.faults.kills import left_running
from tests.faults.scenarios import HISTORY, records

_BENCHMARKS = """\
import os
import perfci
from lib import work

def seen(name):
    with open({path!r}, "a") as file:
        file.write(name + "\\n")

@perfci.benchmark
def counting():
    seen("counting")
    return work

@perfci.benchmark
def steady():
    seen("steady")
    return lambda: sum(range(500))
"""
_CASES = ("counting", "steady")
_FILES = ("--json", "../out/report.json", "--markdown", "../out/report.md")
_RECORD = ("--record", "--history", f"../out/{HISTORY}")
MEASURING: Mapping[str, tuple[str, ...]] = {
    "compare": ("compare", "HEAD~1", "HEAD", *_FILES, *_RECORD),
    "run": ("run", "HEAD", *_FILES, *_RECORD),
    "check": ("check", "HEAD", *_FILES),
}
ERRORS = (errno.ENOSPC, errno.EIO)
_OLD = "what was there before\n"
_SQLITE = ("database or disk is full", "disk I/O error")
_RANDOM = re.compile(r"[0-9a-f]{4,}|\d+|(?<=[-_.])[a-z0-9_]{8}(?=[/.-]|$)")


class MeasuringCampaign:
    """Runs of one command; each starts from the same state: outputs, history, no cache."""

    def __init__(self, name: str, library: Path, folder: Path) -> None:
        self._command, self._library, self._folder = MEASURING[name], library, folder
        self._seen = folder / "measured"
        self._prepare(folder / "first")
        done, self.changes = self._run(0, 0)
        assert done.returncode == 0, done.stdout + done.stderr
        self._whole = self._rows()
        self._measured = self._lines()
        self._records = self._recorded()
        self._names = self._left()

    def run(self, most: int, seed: int = 0, errors: Sequence[int] = ERRORS) -> Outcome:
        """Fail ``most`` changes with each error, spread over the session; seeds fail others."""
        outcome = Outcome(self.changes)
        for error in errors:
            for at in spread(self.changes, most, seed):
                done, _ = self._run(at, error)
                outcome.tried += 1
                outcome.refused += done.returncode != 0
                said = os.strerror(error)
                what = [*self._wrong(done, said), *self._wrong_again()]
                outcome.faults += [Fault(errno.errorcode[error], at, one) for one in what]
        return outcome

    @property
    def _place(self) -> Path:
        return self._folder / "now"

    def _prepare(self, first: Path) -> None:
        project = Project(first / "project")
        text = (project.folder / "pyproject.toml").read_text(encoding="utf-8")
        text = text.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
        project.write("pyproject.toml", text + NOISE_PASSES)
        for loops in (1000, 1010):
            project.counting(loops)
            benchmarks = _BENCHMARKS.format(path=str(self._seen))
            project.write("benchmarks/bench_counting.py", benchmarks)
            project.commit(str(loops))
        if self._command[0] == "check":
            stored = project.process("baseline", "update", "HEAD", "--rounds", "2")
            assert stored.code == 0, stored.text
            project.commit("baselines")
        shutil.rmtree(project.cache, ignore_errors=True)
        for name in ("out", "cache", "tmp"):
            (first / name).mkdir()
        for name in ("report.json", "report.md"):
            (first / "out" / name).write_text(_OLD, encoding="utf-8")

    def _run(self, at: int, error: int) -> tuple[subprocess.CompletedProcess[str], int]:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._folder / "first", self._place, symlinks=True)
        return self._go(at, error)

    def _go(self, at: int, error: int) -> tuple[subprocess.CompletedProcess[str], int]:
        self._seen.unlink(missing_ok=True)
        disk = Disk(self._library, self._place, self._folder / "count")
        environment = {
            "PERFCI_CACHE_DIR": str(self._place / "cache"),
            "TMPDIR": str(self._place / "tmp"),
            "PERFCI_ALLOW_TOKEN": "1",
        }
        return disk.run(self._command, self._place / "project", environment, at, error)

    def _wrong(self, done: subprocess.CompletedProcess[str], said: str) -> Iterator[str]:
        text = done.stdout + done.stderr
        if done.returncode < 0:
            yield f"ended by {signal.Signals(-done.returncode).name}"
        if "Traceback" in text or "[internal]" in text:
            yield f"a traceback: {done.stderr.strip().splitlines()[-1]}"
        yield from self._wrong_code(done, said)
        yield from self._wrong_files()
        yield from self._wrong_history(done)
        if len(self._lines()) >= len(self._measured):
            shown = {case for case in _CASES if case in done.stdout} | {
                case for case, _ in self._rows()
            }
            yield from (f"{case} is lost" for case in _CASES if case not in shown)
        yield from left_running(self._place / "cache")
        for name in sorted(self._left() - self._names):
            if "unrecorded" not in name or "What was measured is in " not in done.stderr:
                yield f"left {name}"

    def _wrong_code(self, done: subprocess.CompletedProcess[str], said: str) -> Iterator[str]:
        """Yield where all isn't done, or not said why."""
        notes = self._notes()
        match done.returncode:
            case 0 if self._rows() != self._whole:
                yield f"exit code 0, and of {len(self._whole)} rows {len(self._rows())}"
            case 0:
                pass
            case 4 if not _is_said(done.stderr, said):
                yield f"exit code 4 and no word: {done.stderr[-300:]}"
            case 3 if said not in done.stdout + done.stderr + notes:
                yield f"exit code 3 and no word: {(done.stdout + done.stderr)[-300:]}"
            case 3 | 4:
                pass
            case code:
                yield f"exit code {code}: {done.stderr[-300:]}"

    def _wrong_files(self) -> Iterator[str]:
        new = self._report()
        if new == "":
            yield "report.json is neither what it was nor a report"
        markdown = (self._place / "out" / "report.md").read_text(encoding="utf-8")
        if markdown == _OLD:
            return
        if new and markdown != named("markdown").text(read_report(new)):
            yield "report.md is not the report's"
        if new is None and not all(case in markdown for case in _CASES):
            yield "report.md is neither what it was nor the whole"

    def _wrong_history(self, done: subprocess.CompletedProcess[str]) -> Iterator[str]:
        if "--record" not in self._command:
            return
        try:
            now = self._recorded()
        except PerfciError as error:
            yield f"the history can't be read: {error}"
            return
        if len(set(now)) < len(now):
            yield "a run is recorded twice"
        if len(now) == len(self._records):
            return
        if done.returncode == 0:
            yield f"exit code 0 and {len(now)} runs recorded"
        elif self._rows() == self._whole and not re.search(r"record|history", done.stderr):
            yield f"measured, not recorded, and no word of it: {done.stderr[-300:]}"

    def _wrong_again(self) -> Iterator[str]:
        """On a sound disk the same command does it all."""
        done, _ = self._go(0, 0)
        if done.returncode != 0:
            yield f"again: exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        elif self._rows() != self._whole:
            yield "again: not the whole"
        elif len(self._recorded()) < len(self._records):
            yield "again: not recorded"

    def _report(self) -> str | None:
        """Return the written report; None where the old file is there, "" for half of one."""
        text = (self._place / "out" / "report.json").read_text(encoding="utf-8")
        if text == _OLD:
            return None
        try:
            read_report(text)
        except PerfciError:
            return ""
        return text

    def _rows(self) -> frozenset[tuple[str, str]]:
        """Return which case's gating metric the report has a value of.

        Percentiles need more undisturbed bursts than a busy machine may leave.
        """
        text = self._report()
        if not text:
            return frozenset()
        every = (one for one in json.loads(text)["results"] if one["gate"] == "fail")
        return frozenset((one["case"], one["metric"]) for one in every if one.get("head"))

    def _notes(self) -> str:
        text = self._report()
        return " ".join(json.loads(text)["notes"]) if text else ""

    def _lines(self) -> list[str]:
        return self._seen.read_text(encoding="utf-8").split() if self._seen.exists() else []

    def _recorded(self) -> list[str]:
        return records(self._place / "out")

    def _left(self) -> frozenset[str]:
        """Return what is there beside the project, without what is random in names."""
        return frozenset(
            _RANDOM.sub("#", str(path.relative_to(self._place)))
            for folder in ("out", "cache", "tmp")
            for path in (self._place / folder).rglob("*")
            if "sqlite-" not in path.name
        )


def _is_said(text: str, why: str) -> bool:
    return "perfci: " in text and any(one in text for one in (why, *_SQLITE))


def spread(changes: int, most: int, seed: int) -> list[int]:
    """Return ``most`` numbers of 1 to ``changes``, evenly far apart; seeds give others."""
    step = max(1, changes // most)
    return list(range(1 + seed % step, changes + 1, step))[:most]
