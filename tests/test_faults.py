"""Commands on a disk that fails, and commands that are killed: nothing lost, doubled or hidden.

``make faults`` fails 24 changes to files of each command (``FAULTS_MOST``), ``make test-all`` two.
A library loaded before the others lets a change fail (``tests/data/failing_disk.c``).
"""

from __future__ import annotations

import errno
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfci.history.store import open_history
from perfci.report.reading import read_report
from tests.builders.project import NOISE_PASSES, Project
from tests.builders.recorded import THERE, recorded

pytestmark = [pytest.mark.processes, pytest.mark.slow]

DATA = Path(__file__).with_name("data")
MOST = int(os.environ.get("FAULTS_MOST", "2"))
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""A full disk and a full quota stay so; a bad sector fails once."""
HISTORY = "history.sqlite"
OLD = "an older file\n"
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?"
    r"|(?<=_timestamp_seconds )[\d.e+]+"
)


def _reported(folder: Path) -> None:
    shutil.copy(DATA / "golden" / "report.json", folder)


def _recorded(folder: Path) -> None:
    with open_history(str(folder / HISTORY)) as history:
        history.record([recorded(number) for number in range(40)])


def _two_histories(folder: Path) -> None:
    _recorded(folder)
    with open_history(str(folder / "other.sqlite")) as history:
        history.record([recorded(number, THERE) for number in range(40)])


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and the state it starts from: ``outputs`` are files it writes over."""

    prepare: Callable[[Path], None]
    words: str
    outputs: tuple[str, ...] = ()


COMMANDS = {
    "report": Command(_reported, "report report.json --format html --output out", ("out",)),
    "merge": Command(
        _reported,
        "merge report.json --expect 1 --json all.json --markdown all.md",
        ("all.json", "all.md"),
    ),
    "import": Command(_two_histories, f"history import other.sqlite --history {HISTORY}"),
    "export": Command(_recorded, f"history export out --history {HISTORY}", ("out",)),
    "trend": Command(
        _recorded,
        f"trend --history {HISTORY} --branch main --html site"
        " --markdown trend.md --json trend.json",
        ("trend.md", "trend.json"),
    ),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    source = DATA / "failing_disk.c"
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", source, "-o", path, "-ldl"], check=True)
    return path


def _run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfci", *words],
        cwd=folder, env={**os.environ, **environment}, check=False, capture_output=True, text=True,
    )  # fmt: skip


class FailingDisk:
    """Runs of one command in ``place``; each starts from a copy of ``first``."""

    def __init__(self, folder: Path, library: Path, words: Sequence[str], start: str = ".") -> None:
        self.first, self.place = folder / "first", folder / "now"
        self.first.mkdir()
        self._count, self._library, self._words, self._start = folder / "n", library, words, start

    def run(self, at: int, error: int = 0, *, again: bool = False) -> tuple[int, str, int]:
        """Let change ``at`` fail (0: none). Return the exit code, the text and the changes."""
        if not again:
            shutil.rmtree(self.place, ignore_errors=True)
            shutil.copytree(self.first, self.place, symlinks=True)
        self._count.write_text("0", encoding="ascii")
        environment = {
            "PERFCI_CACHE_DIR": str(self.place / "cache"),
            "LD_PRELOAD": str(self._library),
            "FAULTS_ROOT": str(self.place),
            "FAULTS_AT": str(at),
            "FAULTS_ERRNO": str(error),
            "FAULTS_COUNT": str(self._count),
            **({"FAULTS_ONCE": "1"} if error == errno.EIO else {}),
        }
        done = _run(self._words, self.place / self._start, environment)
        text = done.stdout + done.stderr
        assert done.returncode >= 0, f"ended by {signal.Signals(-done.returncode).name}"
        assert "Traceback" not in text
        assert "[internal]" not in text
        return done.returncode, text, int(self._count.read_text(encoding="ascii"))


def _contents(folder: Path, outputs: Sequence[str]) -> dict[str, str]:
    return {one: _TIMES.sub("T", (folder / one).read_text(encoding="utf-8")) for one in outputs}


def _records(folder: Path) -> list[str]:
    """Return the history's records, sorted, without times; PerfciError where it can't be read."""
    if not (folder / HISTORY).exists():
        return []
    with open_history(str(folder / HISTORY)) as history:
        every = sorted(_TIMES.sub("T", repr(one)) for one in history.export())
    assert len(set(every)) == len(every), "a record is there twice"
    return every


def _names(folder: Path) -> set[Path]:
    every = (path.relative_to(folder) for path in folder.rglob("*"))
    return {one for one in every if one.parts[0] != "cache" and "sqlite-" not in one.name}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_file_is_old_or_new_on_a_failing_disk(
    name: str, library: Path, tmp_path: Path
) -> None:
    command = COMMANDS[name]
    disk = FailingDisk(tmp_path, library, command.words.split())
    command.prepare(disk.first)
    for one in command.outputs:
        (disk.first / one).write_text(OLD, encoding="utf-8")
    whole, text, changes = disk.run(0)
    assert whole in (0, 1), text  # 1: the merged report fails
    new, kept, left = (
        _contents(disk.place, command.outputs),
        _records(disk.place),
        _names(disk.place),
    )
    started = set(_records(disk.first))

    every = [(error, at) for error in ERRORS for at in range(1, changes + 1)]
    for error, at in random.Random(1).sample(every, min(MOST, len(every))):
        code, text, _ = disk.run(at, error)
        where = f"{errno.errorcode[error]} at {at}: {text}"
        now, records = _contents(disk.place, command.outputs), _records(disk.place)
        assert all(text in (OLD, new[one]) for one, text in now.items()), where
        assert started <= set(records) <= set(kept), where
        assert _names(disk.place) <= left, where
        if code == whole:
            assert (now, records) == (new, kept), where
        else:
            assert "perfci: " in text, where
        code, text, _ = disk.run(0, again=True)
        assert code == whole, text
        assert (_contents(disk.place, command.outputs), _records(disk.place)) == (new, kept), where


def _small_project(folder: Path) -> None:
    project = Project(folder)
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    text = text.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
    project.write("pyproject.toml", text + NOISE_PASSES)
    for loops in (1000, 1010):
        project.counting(loops)
        project.commit(str(loops))
    shutil.rmtree(project.cache, ignore_errors=True)


def test_a_comparison_on_a_failing_disk_says_so_and_leaves_no_half_report(
    library: Path, tmp_path: Path
) -> None:
    words = ["compare", "HEAD~1", "HEAD", "--json", "../report.json", "--allow-token"]
    disk = FailingDisk(tmp_path, library, words, start="project")
    _small_project(disk.first / "project")
    (disk.first / "report.json").write_text(OLD, encoding="utf-8")
    code, text, changes = disk.run(0)
    assert code == 0, text
    for number in range(1, MOST + 1):
        error = (errno.ENOSPC, errno.EIO)[number % 2]
        code, text, _ = disk.run(number * changes // (MOST + 1), error)
        written = (disk.place / "report.json").read_text(encoding="utf-8")
        if written != OLD:
            read_report(written)
        if code == 0:
            assert written != OLD
        else:
            assert code in (3, 4), text
            assert os.strerror(error) in text + written
        assert list(_running(disk.place / "cache")) == []


def _running(cache: Path) -> Iterator[str]:
    """Yield the command lines of processes that know this folder."""
    mark = os.fsencode(cache)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                known = mark in (entry / "environ").read_bytes()
                line = (entry / "cmdline").read_bytes()  # a zombie has none
            except OSError:  # gone, or another user's
                continue
            if known and line:
                yield os.fsdecode(line.replace(b"\0", b" "))


def _killed(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], at_s: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "perfci", *words], cwd=folder, env={**os.environ, **environment},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        process.wait(at_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_an_import_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    command = COMMANDS["import"]
    for number in range(MOST):
        folder = tmp_path / str(number)
        folder.mkdir()
        command.prepare(folder)
        before, other = set(_records(folder)), folder / "expected"
        other.mkdir()
        shutil.copy(folder / "other.sqlite", other / HISTORY)
        both = before | set(_records(other))
        _killed(command.words.split(), folder, {}, random.Random(number).uniform(0.2, 1.5))
        assert before <= set(_records(folder)) <= both
        assert _run(command.words.split(), folder, {}).returncode == 0
        assert set(_records(folder)) == both


def test_a_night_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    _small_project(tmp_path / "project")
    words = f"nightly main --last 2 --history {HISTORY} --allow-token".split()
    environment = {"PERFCI_CACHE_DIR": str(tmp_path / "cache")}
    for number in range(MOST):
        (tmp_path / "project" / HISTORY).unlink(missing_ok=True)
        at_s = random.Random(number).uniform(1.0, 8.0)
        _killed(words, tmp_path / "project", environment, at_s)
        _records(tmp_path / "project")
        done = _run(words, tmp_path / "project", environment)
        assert done.returncode == 0, done.stdout + done.stderr
        with open_history(str(tmp_path / "project" / HISTORY)) as history:
            shas = [one.sha for one in history.export() if hasattr(one, "sha")]
        assert len(shas) == len(set(shas)) == 2
        assert list(_running(tmp_path / "cache")) == []
