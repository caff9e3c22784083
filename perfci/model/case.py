"""A case: one benchmark at one point of its axes, as discovery finds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
"""A name that can stand in a case's id, in tables, paths and comments."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: ``axes`` maps each axis to its value's label.

    ``file`` is relative to the side's tree, ``line`` counts from 1 (0: a saved model).
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
    """Why something could not be measured; field names are those of the report file.

    ``alone`` is how base did when it was tried again without head: ``ran`` or ``failed``; empty
    where it was not tried.
    """

    case: str
    side: str
    stage: str
    kind: str
    message: str
    log_tail: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """An installed copy of a distribution of the project's.

    ``paths`` are its folders, which end in a slash, and files that lie in none of them. ``origin``
    is the address of the git repository that it was installed from, where that alone makes it one.
    """

    distribution: str
    paths: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class FileImports:
    """What importing one benchmark file, or a list of modules, did to its process.

    ``modules`` are those that the side's own code asked for and that are not its own, in order.
    ``environment`` are variables that were set (``NAME=value``) or removed (``NAME``), ``programs``
    what libraries started, ``read`` files of the tree that they opened; ``state`` is torch's.
    """

    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one side's benchmark files hold: cases, the files that failed, and the side's facts.

    ``copies`` are what is installed of the project in the side's Python, which lies in ``pythons``;
    ``sources`` are other clones that it is installed from. ``devices`` are modules of kinds of
    device that other distributions add there, ``metrics`` modules of metrics, with the
    distributions' names. ``imports`` is what each benchmark file's imports did, ``modules`` has all
    that was loaded, with its file. ``importable`` are the folders that this Python imports from
    outside of the checkout, with the names in them; a folder's ends in a slash.
    """

    cases: tuple[Case, ...]
    failures: tuple[Failure, ...]
    facts: Mapping[str, str]
    copies: tuple[Copy, ...] = ()
    pythons: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, FileImports] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    importable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
