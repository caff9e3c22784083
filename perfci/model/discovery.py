"""The result of discovery on a side: its cases, failed files, and the side's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Case, Failure


@dataclass(frozen=True, slots=True)
class Copy:
    """An installed copy of one of the project's distributions.

    ``paths`` are its folders, which end in a slash, and its files outside these folders.
    ``origin`` is the address of the git repository that the copy was installed from. It is set only
    if nothing else shows that the copy is the project's.
    """

    distribution: str
    paths: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class FileImports:
    """Effects of importing one benchmark file, or a list of modules, on its process.

    ``modules`` are other distributions' modules that the side's own code asked for, in order.
    ``environment`` lists the variables that were set (``NAME=value``) or removed (``NAME``).
    ``state`` holds torch's settings after the import, by name.
    """

    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Content of one side's benchmark files: cases, failed files, and the side's facts.

    ``copies`` are the project's distributions as installed in the side's Python. ``pythons`` are
    the folders of that Python. ``sources`` are other clones of the project's repository that this
    Python imports from. ``devices`` and ``metrics`` are modules that other distributions add:
    kinds of device, and metrics with the distributions' names. ``imports`` maps each benchmark file
    to the effects of its imports, ``modules`` each loaded module to its file. ``cards``
    are the UUIDs of the cards that torch sees.
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
    cards: tuple[str, ...] = ()
