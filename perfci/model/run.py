"""Sides, environments, and runs: all that was measured for one side at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfci.model.case import Case, Failure
from perfci.model.worker import WorkerOutput


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: a commit or the working tree, and the Python that runs it."""

    rev: str
    sha: str
    python: str
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """The facts that decide speed, and a short key made of them."""

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
    """All that was measured for one side at one time. ``created_at`` is ISO 8601."""

    side: Side
    environment: Environment
    created_at: str
    cases: tuple[CaseRun, ...]
    failures: tuple[Failure, ...] = ()
