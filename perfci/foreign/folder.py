"""A folder of result files: each file by itself, asv's with what lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from perfci.errors import PerfciError, UsageError
from perfci.foreign import asv
from perfci.foreign.document import load
from perfci.foreign.naming import visible
from perfci.foreign.result import Foreign, Skipped

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
