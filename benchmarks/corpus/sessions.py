"""The recorded sessions, and what is true of them."""

from __future__ import annotations

import gzip
import json
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from perfci.measure.kept_bursts import KeptSession

HERE = Path(__file__).parent
DATA = HERE / "data"
INDEX = DATA / "sessions.jsonl"
PLANTED_IN = {"tails": "latency_p95", "memory": "host_memory_over_setup", "imports": "import_time"}
"""The metric that a kind's planted share makes worse; of the others it is the median latency."""

FEWEST = 8
"""Rounds of a case that is scored: as one of twenty, a change isn't believed before the eighth."""
DOUBLED = 1.0
"""The share of sessions that aren't scored: they tell which part of a metric grows with units."""
_UNITS = {"compiled": 50}
"""Units of the kinds for which not each share is a whole number of them."""


def read_kept(path: Path) -> KeptSession:
    """Return the session that ``perfci compare --keep-bursts`` kept in ``path``."""
    with gzip.open(path) as file:
        return msgspec.msgpack.decode(file.read(), type=KeptSession)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One session: its file, the share by which head is worse, and the words that chose its cases.

    ``burners`` counts the busy loops that ran besides. ``rounds`` counts those of all cases.
    """

    file: str
    share: float
    burners: int
    cases: str
    rounds: int

    @property
    def path(self) -> Path:
        """The session's file."""
        return DATA / self.file


def recorded_sessions(folder: Path = DATA) -> list[Recorded]:
    """Return the sessions of the index."""
    lines = (folder / INDEX.name).read_text(encoding="utf-8").splitlines()
    return [Recorded(**json.loads(line)) for line in lines]


def planted_metric(kind: str) -> str:
    """Return the metric that is made worse in ``kind``."""
    return PLANTED_IN.get(kind, "latency_p50")


def true_share(kind: str, planted: float) -> float:
    """Return by what share the metric of ``kind`` is worse: not all of a call is units."""
    units = _UNITS.get(kind)
    added = round(units * (1.0 + planted)) / units - 1.0 if units else planted
    return _parts().get(kind, 1.0) * added


def scored_sessions(folder: Path = DATA) -> list[Recorded]:
    """Return the sessions that the rules are tried on."""
    return [recorded for recorded in recorded_sessions(folder) if recorded.share < DOUBLED]


@cache
def _parts() -> dict[str, float]:
    """Return by kind how much its metric grew in the median round where units were doubled."""
    parts = {}
    for recorded in recorded_sessions():
        if recorded.share != DOUBLED:
            continue
        session = read_kept(recorded.path)
        for at, case in enumerate(session.cases):
            metric = planted_metric(case.benchmark)
            sides = [kept.workers for kept in session.rounds if kept.case == at]
            parts[case.benchmark] = statistics.median(
                workers["head"].output.values[metric] / workers["base"].output.values[metric] - 1.0
                for workers in sides
            )
    return parts
