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
from perfci.history.foreign import ForeignResults, SkippedResult, keys_of, load, visible
from perfci.plugins import added_plugins, built_in_modules, missing_attributes
from perfci.units import listed

GROUP = "perfci.importers"


class Importer(Protocol):
    """Reader of one tool's files.

    ``TOOL`` is the tool's name in messages. ``COMPANIONS`` maps the names of files that explain the
    results in their folder to what reads their JSON: ``read(plain, path)``.
    """

    TOOL: str
    COMPANIONS: Mapping[str, Callable[[Any, str], Any]]

    def recognised(self, plain: Any, /) -> bool:
        """Return whether this JSON is a file of the tool's results."""

    def read(self, plain: Any, name: str, companion: Callable[[str], Any], /) -> ForeignResults:
        """Return the content of the file ``name``.

        ``companion(file)`` returns a companion of the file's folder, or of the nearest folder above
        it, as ``COMPANIONS`` read it, or None. Raises DamagedFile for a damaged file.
        """


@cache
def importers() -> Mapping[str, Importer]:
    """Return perfci's own importers by name, then those of other distributions.

    Names have hyphens instead of underscores. Raises UsageError for a broken importer.
    """
    added = added_plugins(
        GROUP, lambda plugin: missing_attributes(plugin, "TOOL", "COMPANIONS", "recognised", "read")
    )
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
    chosen = _chosen(form)
    plain = load(content, name)
    importer = _importer_of(plain, chosen)
    if importer is None:
        raise _unknown(plain, name, chosen)
    return _dated(importer.read(plain, name, lambda _: None), name, measured_at)


def foreign_parts(
    paths: Iterable[str], content_of: Callable[[str], bytes], name: str, measured_at: str = ""
) -> Iterator[ForeignResults]:
    """Yield the content of each file of a folder, one at a time: years of asv's results are large.

    ``paths`` are relative to the folder, with ``/``. A tool's companions (asv's ``benchmarks.json``
    and ``machine.json``) are read first. A file that can't be read is yielded as skipped. Raises
    UsageError at the end if the folder has no file of results.
    """
    readers = {
        file: read
        for importer in importers().values()
        for file, read in importer.COMPANIONS.items()
    }
    every = tuple(importers().values())
    companions: dict[str, Any] = {}
    read_files = 0
    reasons: list[str] = []
    for path in sorted(paths, key=lambda path: (_file_name(path) not in readers, path)):
        try:
            plain = load(content_of(path), path)
            importer = _importer_of(plain, every)
            if importer is None and _file_name(path) in readers:
                companions[path] = readers[_file_name(path)](plain, path)
                continue
            if importer is None:
                raise _unknown(plain, path, every)
            results = importer.read(plain, path, partial(_nearest, companions, path))
        except PerfciError as error:
            reasons.append(error.message)
            skipped = SkippedResult(visible(path, 300), visible(error.message, 300))
            results = ForeignResults("", (), (skipped,))
        else:
            read_files += 1
        yield _dated(results, name, measured_at)
    if not read_files:
        why = f"; {reasons[0]}" if reasons else ""
        raise UsageError(
            "foreign-nothing",
            f"{visible(name, 300)} holds no file of results{why}",
            "Give asv's results folder (the one with benchmarks.json), or one with JSON files.",
        )


def _nearest(companions: Mapping[str, Any], path: str, name: str) -> Any:
    """Return the companion ``name`` in the file's folder or the nearest folder above, or None."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if (companion := companions.get(f"{folder}/{name}" if folder else name)) is not None:
            return companion
    return None


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _dated(foreign: ForeignResults, name: str, measured_at: str) -> ForeignResults:
    """Return ``foreign`` with ``measured_at`` for runs without a time. Their ids don't change."""
    dated = tuple(replace(run, measured_at=run.measured_at or measured_at) for run in foreign.runs)
    runs = tuple(run for run in dated if run.measured_at)
    timeless = (SkippedResult(visible(name, 300), "it doesn't say when it was measured"),)
    skipped = (*foreign.skipped, *timeless * (len(dated) - len(runs)))
    return replace(foreign, runs=runs, skipped=skipped)


def _chosen(form: str) -> tuple[Importer, ...]:
    known = importers()
    if not form:
        return tuple(known.values())
    if (importer := known.get(form.replace("_", "-"))) is not None:
        return (importer,)
    raise UsageError(
        "foreign-format", f"{visible(form, 40)!r} is no format", f"Formats: {listed([*known])}."
    )


def _importer_of(plain: Any, chosen: Iterable[Importer]) -> Importer | None:
    return next((importer for importer in chosen if importer.recognised(plain)), None)


def _unknown(plain: Any, name: str, chosen: Iterable[Importer]) -> UsageError:
    return UsageError(
        "foreign-unknown",
        f"{visible(name, 300)} is no file of results of "
        f"{listed([importer.TOOL for importer in chosen])}: {_appearance(plain)}",
        "Give the JSON that the tool itself writes; docs/foreign.md says how.",
    )


def _appearance(plain: Any) -> str:
    """Describe what the file seems to be instead."""
    if not isinstance(plain, dict):
        return f"it is {'a list' if isinstance(plain, list) else 'a single value'}"
    schema = plain.get("schema")
    if isinstance(schema, str) and schema.startswith("perfci."):
        return f"it is perfci's own ({visible(schema, 40)})"
    if {"machine", "os", "ram"} & plain.keys() and "version" in plain:
        return "it is asv's machine.json; give the whole results folder"
    if any(isinstance(value, dict) and "param_names" in value for value in plain.values()):
        return "it is asv's benchmarks.json; give the whole results folder"
    keys = ", ".join(visible(key, 40) for key in keys_of(plain)[:8])
    return f"it is an object with {keys}" if keys else "it is an empty object"
