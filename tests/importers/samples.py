"""The foreign files of tests/data/foreign, and what was read of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfci.history.importers import ForeignResults, foreign_parts, read_foreign
from perfci.model.run import Point, RecordedRun

FOLDER = Path(__file__).parent.parent / "data" / "foreign"
FILES = tuple(sorted(FOLDER.glob("*.json")))


def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def plain(name: str) -> Any:
    return json.loads(content(name))


def read(what: Any, name: str = "results.json") -> ForeignResults:
    """Read a file's bytes, a file by its name, or JSON that a test made."""
    if isinstance(what, str):
        return read_foreign(content(what), what)
    return read_foreign(what if isinstance(what, bytes) else json.dumps(what).encode(), name)


def read_folder(files: Mapping[str, bytes]) -> tuple[ForeignResults, ...]:
    """Read a folder of files, which is called ``old``: what each of them gives."""
    return tuple(foreign_parts(files, files.__getitem__, "old"))


def only_run(foreign: ForeignResults) -> RecordedRun:
    (run,) = foreign.runs
    return run


def points(foreign: ForeignResults) -> dict[tuple[str, str], Point]:
    """Return the points of the only run, by case and metric."""
    return {(one.case, one.metric): one for one in only_run(foreign).points}


def why(foreign: ForeignResults, what: str) -> str:
    """Return why ``what`` was skipped."""
    return next(one.why for one in foreign.skipped if one.what == what)
