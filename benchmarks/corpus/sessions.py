"""The recorded sessions, and what is true of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data"
INDEX = DATA / "sessions.jsonl"
PLANTED_IN = {"tails": "latency_p95", "memory": "host_memory_over_setup", "imports": "import_time"}
"""The metric that a kind's planted share makes worse; of the others it is the median latency."""

FEWEST = 8
"""Rounds of a case that is scored: as one of twenty, a change isn't believed before the eighth."""
_PART = {"imports": 0.9}
"""The part of a kind's metric that grows: the rest of the import is the standard library's."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One session: its file, the share by which head is worse, and the words that chose its cases.

    ``burners`` counts the busy loops that ran besides. ``rounds`` counts those of all cases. Of two
    releases of a ``library`` nothing is known to be planted.
    """

    file: str
    share: float
    burners: int
    cases: str
    rounds: int
    library: str = ""

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
    """Return by what share the metric of ``kind`` is worse."""
    return _PART.get(kind, 1.0) * planted


def plain(recorded: Recorded) -> dict[str, Any]:
    """Return the line of a session."""
    return asdict(recorded)
