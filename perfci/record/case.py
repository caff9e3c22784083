"""A case: one benchmark at one point of its axes, as discovery finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """One case: ``axes`` maps each axis to its value's label.

    ``file`` is relative to the benchmarks' tree, ``line`` counts from 1 (0: a saved model).
    ``source_hash`` is of the benchmark's whole file: the version of its meaning.
    ``thresholds`` maps metric names to shares; ``timeout`` is in s; ``skip`` is a reason.
    """

    id: str
    benchmark: str
    axes: Mapping[str, str]
    file: str
    line: int
    source_hash: str
    tags: tuple[str, ...] = ()
    skip: str | None = None
    timeout: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] | None = None
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be measured; field names are those of the report file."""

    case: str
    side: str
    stage: str
    kind: str
    message: str
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A package that the side's tree holds in ``folder``, but that was imported from ``file``."""

    package: str
    file: str
    folder: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one side's benchmark files hold: cases, the files that failed, and the side's facts.

    ``elsewhere``: the side's own packages that came from outside its tree.
    """

    cases: tuple[Case, ...]
    failures: tuple[Failure, ...]
    facts: Mapping[str, str]
    elsewhere: tuple[Elsewhere, ...] = ()
