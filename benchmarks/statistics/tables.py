"""The tables that the raw counts make, as Markdown, each under its heading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.statistics import summary, thresholds

_BLOCK = re.compile(r"(<!-- simulated: (\w+) -->\n).*?(\n<!-- /simulated -->)", re.DOTALL)


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return every table that the results allow, by its name."""
    found = {
        "summary": summary.table(results),
        "models": summary.by_model(results),
        "spreads": thresholds.spreads_table(results),
    }
    return {name: text for name, text in found.items() if text}


def rewritten(document: str, made: dict[str, str]) -> str:
    """Return ``document`` with the tables that it marks put in anew."""
    return _BLOCK.sub(
        lambda block: f"{block[1]}{made[block[2]]}{block[3]}" if block[2] in made else block[0],
        document,
    )


def marked(document: str) -> tuple[str, ...]:
    """Return the names of the tables that ``document`` marks."""
    return tuple(block[2] for block in _BLOCK.finditer(document))
