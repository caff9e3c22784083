"""Suggestions as the lines of TOML that would say so in the file they belong into."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from perfci.config import PROJECT_FILE
from perfci.record.calibration import Calibration, Suggestion

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def writable(suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    """Return the suggestions that belong into the configuration."""
    return tuple(one for one in suggestions if not one.where)


def toml_lines(calibration: Calibration) -> str:
    """Return the TOML of the suggestions that a configuration can hold; empty for none."""
    prefix = ("tool", "perfci") if calibration.configuration.endswith(PROJECT_FILE) else ()
    tables: dict[tuple[str, ...], list[str]] = {}
    for one in writable(calibration.suggestions):
        table = (*prefix, *one.path[:-1])
        tables.setdefault(table, []).append(f"{_key(one.path[-1])} = {one.value!r}")
    blocks = []
    for table, lines in tables.items():
        header = [f"[{'.'.join(map(_key, table))}]"] if table else []
        blocks.append("\n".join([*header, *lines]))
    return "\n\n".join(blocks)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
