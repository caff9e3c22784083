"""Bytes to plain JSON, and which tool wrote a file: by its content, never by its name.

The standard library's decoder, not msgspec's: asv and pytest-benchmark write ``NaN``, which is no
JSON and yet a result that was skipped, not a damaged file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from perfci.errors import DamagedFile, PerfciError, UsageError
from perfci.history.importers.gathering import Foreign, Skipped, visible
from perfci.history.importers.tools import Importer, importers
from perfci.units import listed

T = TypeVar("T")
MOST_BYTES = 64 << 20
"""Of a file, and of what is packed in it. Raw data of ten thousand benchmarks come near it."""
_GZIP = b"\x1f\x8b"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_PATH = re.compile(r" - at `(?P<path>[^`]+)`$")


def load(content: bytes, name: str) -> Any:
    """Return the JSON in ``content``, which may be packed by gzip; DamagedFile where it is none."""
    if len(content) > MOST_BYTES:
        raise _too_large(name)
    packed = _unpacked(content, name) if content.startswith(_GZIP) else content
    try:
        text = packed.decode("utf-8-sig")
        plain = json.loads(text, object_pairs_hook=_without_twins)
        if _HALF.search(text):  # half a character: no encoder takes it, msgspec neither
            again = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
            plain = json.loads(again, object_pairs_hook=_without_twins)
        return plain
    except RecursionError as error:
        raise _damaged(name, "it is nested too deeply") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise _damaged(name, str(error) or "not JSON") from error


def fill(plain: Any, kind: type[T], name: str, tool: str) -> T:
    """Return the ``kind`` that ``plain`` stands for; what is not known is let be."""
    try:
        return msgspec.convert(plain, type=kind, strict=True)
    except msgspec.ValidationError as error:
        raise DamagedFile(
            "foreign-layout",
            f"{visible(name, 300)} looks like a result file of {tool}, but {explained(error)}",
            f"Write it again with {tool}, or take the file out.",
        ) from error


def explained(error: msgspec.ValidationError) -> str:
    """Return msgspec's message as ``$.a.b: Expected …, got …``."""
    said = str(error)
    found = _PATH.search(said)
    place = found["path"] if found else "$"
    return visible(f"at {place}: {_PATH.sub('', said)}", 300)


def keys_of(plain: Any) -> Sequence[str]:
    """Return an object's keys; none of anything else."""
    return tuple(plain) if isinstance(plain, dict) else ()


def _unpacked(content: bytes, name: str) -> bytes:
    unpack = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = unpack.decompress(content, MOST_BYTES + 1)
    except zlib.error as error:
        raise _damaged(name, f"it can't be unpacked: {error}") from error
    if len(text) > MOST_BYTES:
        raise _too_large(name)
    if not unpack.eof:
        raise _damaged(name, "it can't be unpacked: its end is missing")
    return text


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {visible(twin, 100)!r} stands there twice")
    return found


def _damaged(name: str, why: str) -> DamagedFile:
    return DamagedFile(
        "foreign-damaged",
        f"{visible(name, 300)} is no JSON: {visible(why, 300)}",
        "It may have been cut off while it was written or copied: get it again.",
    )


def _too_large(name: str) -> UsageError:
    return UsageError(
        "foreign-too-large",
        f"{visible(name, 300)} holds more than {MOST_BYTES >> 20} MiB",
        "Leave out the raw data (pytest-benchmark: not --benchmark-save-data), or split it.",
    )


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
