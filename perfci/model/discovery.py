"""The result of discovery on a side: its cases, failed files, and the side's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Case, Failure


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
    """Effects of importing one benchmark file, or a list of modules, on its process.

    ``modules`` are other distributions' modules that the side's own code asked for, in order.
    ``environment`` are variables that were set (``NAME=value``) or removed (``NAME``), ``programs``
    are those that libraries started, ``read`` files of the tree that they opened. ``state`` is
    torch's.
    """

    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Content of one side's benchmark files: cases, failed files, and the side's facts.

    ``copies`` are the project's distributions that are installed in the side's Python, which lies
    in ``pythons``. ``sources`` are other clones that they are installed from. ``devices`` are
    modules of kinds of device that other distributions add there, ``metrics`` modules of metrics,
    with the distributions' names. ``imports`` has the effects of each benchmark file's imports,
    ``modules`` all loaded modules, with their files. ``importable`` are the folders outside of the
    checkout that this Python imports from, with the names in them; a folder's name ends in a slash.
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
