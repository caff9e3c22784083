"""Which tool wrote a file, by its content and never by its name, and what the file holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from perfci.errors import PerfciError, UsageError
from perfci.foreign.document import keys_of, load
from perfci.foreign.gathering import Foreign, Skipped, visible
from perfci.foreign.tools import Importer, importers
from perfci.units import listed


def read_foreign(content: bytes, name: str, measured_at: str = "") -> Foreign:
    """Return what the file ``name`` holds.

    ``measured_at`` (ISO 8601, UTC) is taken where the file has no time; without it such a run is
    skipped. UsageError for JSON that is no file of results, DamagedFile for one that can't be
    believed.
    """
    plain = load(content, name)
    return _dated(_importer_of(plain, name).read(plain, name, lambda _: None), name, measured_at)


def foreign_parts(
    paths: Iterable[str], content_of: Callable[[str], bytes], name: str, measured_at: str = ""
) -> Iterator[Foreign]:
    """Yield what each file of a folder holds, one at a time: years of asv's results are large.

    ``paths`` are relative to the folder, with ``/``. A tool's companions (asv's ``benchmarks.json``
    and ``machine.json``) are read first. A file that can't be read is yielded as skipped.
    UsageError, at the end, where no file was one of results.
    """
    readers = {file: read for one in importers() for file, read in one.COMPANIONS.items()}
    beside: dict[str, Any] = {}
    found = 0
    reasons: list[str] = []
    for path in sorted(paths, key=lambda one: (_last(one) not in readers, one)):
        try:
            plain = load(content_of(path), path)
            if _last(path) in readers and not _is_results(plain):
                beside[path] = readers[_last(path)](plain, path)
                continue
            part = _importer_of(plain, path).read(plain, path, partial(_nearest, beside, path))
        except PerfciError as error:
            reasons.append(error.message)
            part = Foreign("", (), (Skipped(visible(path, 300), visible(error.message, 300)),))
        else:
            found += 1
        yield _dated(part, name, measured_at)
    if not found:
        why = f"; {reasons[0]}" if reasons else ""
        raise UsageError(
            "foreign-nothing",
            f"{visible(name, 300)} holds no file of results{why}",
            "Give asv's results folder (the one with benchmarks.json), or one with JSON files.",
        )


def _nearest(beside: Mapping[str, Any], path: str, companion: str) -> Any:
    """Return the companion of the file's folder, or of the nearest folder above it, or None."""
    folder = path.rpartition("/")[0]
    while (
        found := beside.get(f"{folder}/{companion}" if folder else companion)
    ) is None and folder:
        folder = folder.rpartition("/")[0]
    return found


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _dated(foreign: Foreign, name: str, measured_at: str) -> Foreign:
    """Give a time to the runs that have none; the id stays, whatever time that is."""
    dated = tuple(replace(run, measured_at=run.measured_at or measured_at) for run in foreign.runs)
    runs = tuple(run for run in dated if run.measured_at)
    timeless = (Skipped(visible(name, 300), "it doesn't say when it was measured"),)
    skipped = (*foreign.skipped, *timeless * (len(dated) - len(runs)))
    return replace(foreign, runs=runs, skipped=skipped)


def _is_results(plain: Any) -> bool:
    return any(importer.recognised(plain) for importer in importers())


def _importer_of(plain: Any, name: str) -> Importer:
    for importer in importers():
        if importer.recognised(plain):
            return importer
    raise UsageError(
        "foreign-unknown",
        f"{visible(name, 300)} is no file of results of "
        f"{listed([one.TOOL for one in importers()])}: {_seen(plain)}",
        "Give the JSON that the tool itself writes; docs/foreign.md says how.",
    )


def _seen(plain: Any) -> str:
    """Return what the file seems to be instead."""
    if not isinstance(plain, dict):
        return f"it is {'a list' if isinstance(plain, list) else 'a single value'}"
    schema = plain.get("schema")
    if isinstance(schema, str) and schema.startswith("perfci."):
        return f"it is perfci's own ({visible(schema, 40)})"
    if {"machine", "os", "ram"} & plain.keys() and "version" in plain:
        return "it is asv's machine.json; give the whole results folder"
    if any(isinstance(one, dict) and "param_names" in one for one in plain.values()):
        return "it is asv's benchmarks.json; give the whole results folder"
    keys = ", ".join(visible(key, 40) for key in keys_of(plain)[:8])
    return f"it is an object with {keys}" if keys else "it is an empty object"
