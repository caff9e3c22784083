"""What the history holds: recorded runs with their points, and how the gate's reports ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from perfci.model.metric import Direction
from perfci.model.run import Environment


@dataclass(frozen=True, slots=True)
class Point:
    """One case's metric in one recorded run.

    ``value`` is the centre over workers, in ``unit``; ``values`` is one number for each worker,
    empty where an imported file has none.
    """

    case: str
    metric: str
    unit: str
    value: float
    values: tuple[float, ...] = ()
    direction: Direction = "lower"


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What one run says of itself: of which commit it is, and where and when it was measured.

    ``source`` is how it came: ``run``, ``compare``, ``nightly``, or an importer's name such as
    ``asv``. ``sha`` is empty where an imported file has none. ``position`` counts the commit's
    first-parent ancestors, None where no repository was asked. Times are ISO 8601 in UTC, empty
    where not known (``measured_at`` always is). ``runner`` names the machine.
    """

    id: str
    source: str
    sha: str
    subject: str
    branch: str
    committed_at: str
    measured_at: str
    position: int | None
    runner: str


HEADER = tuple(one.name for one in fields(RunHeader))


def header_fields(run: Any) -> dict[str, Any]:
    """Return the fields of a header, of whatever has them as attributes."""
    return {name: getattr(run, name) for name in HEADER}


@dataclass(frozen=True, slots=True)
class RecordedRun(RunHeader):
    """One run of one commit on one machine, whole. A run recorded twice is there once.

    ``source_hashes`` maps a case to the hash of its benchmark's source; ``failed`` maps a case to
    why it has no points.
    """

    environment: Environment
    points: tuple[Point, ...]
    source_hashes: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """How one comparison of two sides ended: what the gate's own health is made of.

    ``same`` says that both sides were the same commit (A/A), so that each ``fail`` was false.
    ``comparisons`` counts the gating ones; ``regressed`` and ``inconclusive`` are of these.
    """

    id: str
    command: str
    created_at: str
    environment: str
    runner: str
    base_sha: str
    head_sha: str
    same: bool
    verdict: str
    comparisons: int
    regressed: int
    inconclusive: int
