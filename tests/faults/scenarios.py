"""Commands that write, and what a user must find after a failure: all as it was, or all done."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfci.errors import PerfciError
from perfci.history.store import open_history
from tests.builders.recorded import THERE, recorded

DATA = Path(__file__).parents[1] / "data"
HISTORY = "history.sqlite"
RUNS = 40
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?"
    r"|(?<=_timestamp_seconds )[\d.e+]+"
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command, run in a folder of which ``prepare`` made the first state.

    ``outputs`` are the files it writes; each was there before, and is never half of anything.
    ``bit_by_bit``: it adds runs to the history, and a failure may leave some done.
    """

    prepare: Callable[[Path], None]
    command: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    bit_by_bit: bool = False


def _report(*outputs: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        shutil.copy(DATA / "golden" / "report.json", folder)
        _old(folder, outputs)

    return prepare


def _recorded(*outputs: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        with open_history(str(folder / HISTORY)) as history:
            history.record([recorded(number) for number in range(RUNS)])
        _old(folder, outputs)

    return prepare


def _exported(folder: Path) -> None:
    _recorded()(folder)
    other = folder / "other.sqlite"
    with open_history(str(other)) as history:
        history.record([recorded(number, THERE) for number in range(RUNS)])


def _old(folder: Path, outputs: tuple[str, ...]) -> None:
    for name in outputs:
        (folder / name).write_text("what was there before\n", encoding="utf-8")


_TRENDS = ("trend.md", "trend.json", "metrics.txt")
SCENARIOS = {
    **{
        f"report as {kind}": Scenario(
            _report("out"), ("report", "report.json", "--format", kind, "--output", "out"), ("out",)
        )
        for kind in ("markdown", "html", "junit", "csv")
    },
    "merge": Scenario(
        _report("all.json", "all.md"),
        ("merge", "report.json", "--expect", "1", "--json", "all.json", "--markdown", "all.md"),
        ("all.json", "all.md"),
    ),
    "history import": Scenario(
        _exported, ("history", "import", "other.sqlite", "--history", HISTORY), bit_by_bit=True
    ),
    "history export": Scenario(
        _recorded("all.jsonl"),
        ("history", "export", "all.jsonl", "--history", HISTORY),
        ("all.jsonl",),
    ),
    "trend": Scenario(
        _recorded(*_TRENDS),
        (
            *("trend", "--history", HISTORY, "--branch", "main", "--html", "site"),
            *("--markdown", _TRENDS[0], "--json", _TRENDS[1], "--openmetrics", _TRENDS[2]),
        ),
        _TRENDS,
    ),
}


def contents(folder: Path, scenario: Scenario) -> Mapping[str, str]:
    """Return what the outputs hold, without times."""
    return {
        name: _TIMES.sub("T", (folder / name).read_text(encoding="utf-8"))
        for name in scenario.outputs
    }


def records(folder: Path) -> list[str]:
    """Return what the history holds, in an order of its own; PerfciError where it can't be read."""
    if not (folder / HISTORY).exists():
        return []
    with open_history(str(folder / HISTORY)) as history:
        return sorted(_TIMES.sub("T", repr(one)) for one in history.export())


def readable(folder: Path) -> str:
    """Return why the history can't be read, or nothing."""
    try:
        records(folder)
    except PerfciError as error:
        return str(error)
    return ""
