"""Result files of other tools as recorded runs. Pure.

Each tool is one module of this package, or what an entry point of the group ``perfci.importers``
names. It has the attributes of ``Importer``. A file's tool is known by its content, never by its
name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol, cast

from perfci.errors import PerfciError, UsageError
from perfci.history.foreign import ForeignResults, SkippedResult, load, visible
from perfci.plugins import added_plugins, built_in_modules
from perfci.units import listed

GROUP = "perfci.importers"


class Importer(Protocol):
    """Reader of one tool's files.

    ``TOOL`` is the tool's name in messages. ``COMPANIONS`` names files that explain the results in
    their folder.
    """

    TOOL: str
    COMPANIONS: tuple[str, ...]

    def recognised(self, plain: Any, /) -> bool:
        """Return whether this JSON is a file of the tool's results."""

    def read(self, plain: Any, name: str, companion: Callable[[str], Any], /) -> ForeignResults:
        """Return the content of the file ``name``.

        ``companion(file)`` returns the JSON of a companion in the file's folder, or in the nearest
        folder above it, or None. Raises DamagedFile for a damaged file.
        """


@cache
def importers() -> Mapping[str, Importer]:
    """Return perfci's own importers by name, then those of other distributions.

    Names have hyphens instead of underscores. Raises UsageError for a broken importer.
    """
    added = added_plugins(GROUP, "TOOL", "COMPANIONS", "recognised", "read")
    plugins = (*built_in_modules(sys.modules[__name__]), *added)
    return {name.replace("_", "-"): cast("Importer", plugin) for name, plugin in plugins}


def read_foreign(
    content: bytes, name: str, measured_at: str = "", form: str = ""
) -> ForeignResults:
    """Return the content of the file ``name``. ``form`` names its importer, if given.

    ``measured_at`` (ISO 8601, UTC) is used if the file has no time. Without either, the run is
    skipped. Raises UsageError for JSON that is no file of results, or for an unknown ``form``, and
    DamagedFile for a damaged file.
    """
    known = importers()
    wanted = form.replace("_", "-")
    if wanted and wanted not in known:
        raise UsageError(
            "foreign-format", f"{visible(form, 40)!r} is no format", f"Formats: {listed([*known])}."
        )
    chosen = (known[wanted],) if wanted else tuple(known.values())
    plain = load(content, name)
    importer = next((each for each in chosen if each.recognised(plain)), None)
    if importer is None:
        raise _unknown(name, chosen)
    return _dated(importer.read(plain, name, lambda _: None), name, measured_at)


def foreign_parts(
    paths: Iterable[str], content_of: Callable[[str], bytes], name: str, measured_at: str = ""
) -> Iterator[ForeignResults]:
    """Yield the content of each file of a folder, one at a time: years of asv's results are large.

    ``paths`` are relative to the folder, with ``/``. A tool's companions (asv's ``benchmarks.json``
    and ``machine.json``) are read first. A file that can't be read is yielded as skipped. Raises
    UsageError at the end if the folder has no file of results.
    """
    every = tuple(importers().values())
    explaining = {file for importer in every for file in importer.COMPANIONS}
    companions: dict[str, Any] = {}
    whys: list[str] = []
    is_read = False
    for path in sorted(paths, key=lambda path: (path.split("/")[-1] not in explaining, path)):
        try:
            plain = load(content_of(path), path)
            importer = next((each for each in every if each.recognised(plain)), None)
            if importer is None and path.split("/")[-1] in explaining:
                companions[path] = plain
                continue
            if importer is None:
                raise _unknown(path, every)
            results = importer.read(plain, path, partial(_nearest, companions, path))
            is_read = True
        except PerfciError as error:
            whys.append(error.message)
            skipped = SkippedResult(visible(path, 300), visible(error.message, 300))
            results = ForeignResults("", (), (skipped,))
        yield _dated(results, name, measured_at)
    if not is_read:
        raise UsageError(
            "foreign-nothing",
            "; ".join([f"{visible(name, 300)} holds no file of results", *whys[:1]]),
            "Give asv's results folder (the one with benchmarks.json), or one with JSON files.",
        )


def _nearest(companions: Mapping[str, Any], path: str, name: str) -> Any:
    """Return the companion ``name`` in the file's folder or the nearest folder above, or None."""
    folders = path.split("/")[:-1]
    above = ("/".join((*folders[:depth], name)) for depth in range(len(folders), -1, -1))
    return next((companions[file] for file in above if file in companions), None)


def _dated(foreign: ForeignResults, name: str, measured_at: str) -> ForeignResults:
    """Return ``foreign`` with ``measured_at`` for runs without a time. Their ids don't change."""
    dated = tuple(replace(run, measured_at=run.measured_at or measured_at) for run in foreign.runs)
    runs = tuple(run for run in dated if run.measured_at)
    timeless = (SkippedResult(visible(name, 300), "it doesn't say when it was measured"),)
    skipped = (*foreign.skipped, *timeless * (len(dated) - len(runs)))
    return replace(foreign, runs=runs, skipped=skipped)


def _unknown(name: str, chosen: Iterable[Importer]) -> UsageError:
    return UsageError(
        "foreign-unknown",
        f"{visible(name, 300)} is no file of results of "
        f"{listed([importer.TOOL for importer in chosen])}",
        "Give the JSON that the tool itself writes, or its folder; docs/foreign.md says how.",
    )
