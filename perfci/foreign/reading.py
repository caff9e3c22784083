"""Which tool wrote a file, told by its content and never by its name, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perfci.errors import PerfciError, UsageError
from perfci.foreign import asv, google_benchmark, pyperf, pytest_benchmark
from perfci.foreign.document import keys_of, load
from perfci.foreign.gathering import Foreign, Skipped, visible

# A folder of result files: each file by itself, asv's with what lies beside it.

_BENCHMARKS = "benchmarks.json"
_MACHINE = "machine.json"


def parts(
    paths: Iterable[str],
    content_of: Callable[[str], bytes],
    name: str,
    read: Callable[[Any, str], Foreign],
) -> Iterator[Foreign]:
    """Yield what each file says; ``read`` is for those that stand alone.

    A file that can't be believed is yielded as skipped. UsageError where no file was one of
    results.
    """
    beside: dict[str, Any] = {}
    found = 0
    reasons: list[str] = []
    for path in sorted(paths, key=lambda one: (_last(one) not in {_BENCHMARKS, _MACHINE}, one)):
        content = content_of(path)
        try:
            part = _part(load(content, path), path, beside, read)
        except PerfciError as error:
            part = Foreign("", (), (Skipped(visible(path, 300), visible(error.message, 300)),))
            reasons.append(error.message)
        else:
            found += part is not None
        if part is not None:
            yield part
    if not found:
        why = f"; {reasons[0]}" if reasons else ""
        raise UsageError(
            "foreign-nothing",
            f"{visible(name, 300)} holds no file of results{why}",
            "Give asv's results folder (the one with benchmarks.json), or one with JSON files.",
        )


def _part(
    plain: Any, path: str, beside: dict[str, Any], read: Callable[[Any, str], Foreign]
) -> Foreign | None:
    """Return what a file says; None where it is one that others need, kept in ``beside``."""
    if asv.recognised(plain):
        return asv.read(plain, path, *_near(beside, path))
    if _last(path) not in {_BENCHMARKS, _MACHINE}:
        return read(plain, path)
    beside[path] = asv.described(plain, path) if _last(path) == _BENCHMARKS else plain
    return None


def _near(beside: Mapping[str, Any], path: str) -> tuple[Any, Any]:
    """Return what the nearest ``benchmarks.json`` and the machine's own file say."""
    folder = path.rpartition("/")[0]
    machine = beside.get(f"{folder}/{_MACHINE}" if folder else _MACHINE)
    while True:
        found = beside.get(f"{folder}/{_BENCHMARKS}" if folder else _BENCHMARKS)
        if found is not None or not folder:
            return found, machine if isinstance(machine, dict) else {}
        folder = folder.rpartition("/")[0]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


_TOOLS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str], Foreign]], ...] = (
    (asv.recognised, asv.read),
    (pytest_benchmark.recognised, pytest_benchmark.read),
    (google_benchmark.recognised, google_benchmark.read),
    (pyperf.recognised, pyperf.read),
)
_KNOWN = "asv, pytest-benchmark, pyperf and Google Benchmark"


def read_foreign(content: bytes, name: str, measured_at: str = "") -> Foreign:
    """Return what the file ``name`` holds.

    ``measured_at`` (ISO 8601, UTC) is taken where the file tells no time; without it such a run is
    skipped. UsageError for JSON that is no file of results, DamagedFile for one that can't be
    believed.
    """
    return _dated(_read(load(content, name), name), name, measured_at)


def foreign_parts(
    paths: Iterable[str], content_of: Callable[[str], bytes], name: str, measured_at: str = ""
) -> Iterator[Foreign]:
    """Yield what each file of a folder holds, one at a time: years of asv's results are large.

    ``paths`` are relative to the folder, with ``/``. An asv results folder is read with its
    ``benchmarks.json`` and ``machine.json``. A file that can't be read is yielded as skipped.
    UsageError, at the end, where no file was one of results.
    """
    for part in parts(paths, content_of, name, _read):
        yield _dated(part, name, measured_at)


def _dated(foreign: Foreign, name: str, measured_at: str) -> Foreign:
    """Give a time to the runs that have none; the id stays, whatever time that is."""
    dated = tuple(replace(run, measured_at=run.measured_at or measured_at) for run in foreign.runs)
    runs = tuple(run for run in dated if run.measured_at)
    timeless = (Skipped(visible(name, 300), "it doesn't tell when it was measured"),)
    skipped = (*foreign.skipped, *timeless * (len(dated) - len(runs)))
    return replace(foreign, runs=runs, skipped=skipped)


def _read(plain: Any, name: str) -> Foreign:
    for recognised, read in _TOOLS:
        if recognised(plain):
            return read(plain, name)
    raise UsageError(
        "foreign-unknown",
        f"{visible(name, 300)} is no file of results of {_KNOWN}: {_seen(plain)}",
        "Give the JSON that the tool itself writes; docs/foreign.md says how.",
    )


def _seen(plain: Any) -> str:
    """Return what it is instead, as far as that can be told."""
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
