"""Sides, environments and runs: what was measured, what ran, and what the history holds of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from perfci.model.case import Case, Direction, Failure
from perfci.model.measuring import WorkerOutput


@dataclass(frozen=True, slots=True)
class Side:
    """One side: a commit or the working tree, and the Python that runs it."""

    rev: str
    sha: str
    python: str
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """The facts that affect speed, and a short key derived from them."""

    key: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The workers of one case on one side, in the order of their rounds, and their failures."""

    case: Case
    workers: tuple[WorkerOutput, ...]
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """All that was measured of one side in one session. ``created_at`` is ISO 8601."""

    side: Side
    environment: Environment
    created_at: str
    cases: tuple[CaseRun, ...]
    failures: tuple[Failure, ...] = ()


class Point(NamedTuple):
    """One case's metric in one recorded run. ``value`` is the centre over workers, in ``unit``."""

    case: str
    metric: str
    unit: str
    value: float
    direction: Direction = "lower"


@dataclass(frozen=True, slots=True)
class RunHeader:
    """Description of a run: its commit, its machine and its time.

    ``source`` says where the run comes from: ``run``, ``compare``, ``nightly``, or an importer's
    name such as ``asv``. ``sha`` is empty if an imported file names no commit. ``position`` counts
    the commit's first-parent ancestors; None if no repository was at hand to count in. Times are
    ISO 8601 in UTC. ``committed_at`` may be unknown, then it is empty. ``runner`` names the
    machine.
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


HEADER = tuple(each.name for each in fields(RunHeader))
"""Names of a header's fields."""


@dataclass(frozen=True, slots=True)
class RecordedRun(RunHeader):
    """One run of one commit on one machine, with its numbers. The history has each run once.

    ``source_hashes`` maps each case to the hash of its benchmark's source. ``failed`` maps a case
    without points to the reason.
    """

    environment: Environment
    points: tuple[Point, ...]
    source_hashes: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def content_id(run: RecordedRun, *also: str) -> str:
    """Return a hash of a run's commit, machine, moment, values and failures, and of ``also``.

    So the same run has the same id wherever it is recorded.
    """
    where = (run.sha, run.environment.key, run.measured_at, run.runner)
    content = (*where, sorted(run.points), sorted(run.failed.items()), also)
    text = json.dumps(content, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
