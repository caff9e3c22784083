"""The scores as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.statistics.scoring import markdown

Row = dict
Cell = Callable[[Sequence[Row]], str]


def tables(rows: Sequence[Row]) -> str:
    """Return two tables: each tool as it comes, and each at its best setting for each set."""
    tools: dict[str, list[Row]] = {}
    for row in rows:
        tools.setdefault(row["tool"], []).append(row)
    names, quiet = rows[0]["sets"], rows[0]["quiet"]
    strongest = list(quiet)[-1]
    plain: dict[str, Cell] = {f"F1, {name}": partial(_default_f1, name=name) for name in names}
    plain |= {
        f"false alarms per 1,000 quiet points, {name}": partial(_alarms, name=name)
        for name in quiet
    }
    plain |= {
        f"quiet series of 100 points with an alarm, {strongest}": partial(_short, name=strongest),
        "changes named in 6 unlabelled series of sunpy": lambda some: str(sum(some[0]["sunpy"])),
        "CPU time for a series of 365 points": lambda some: f"{some[0]['ms_per_series']:.1f} ms",
    }
    best: dict[str, Cell] = {f"F1, {name}": partial(_best_f1, name=name) for name in names}
    return "\n".join(
        [
            "Each tool at its defaults; F1 at a margin of 2 / of 5 points:",
            "",
            _table(tools, plain),
            "",
            "Each tool at the setting that does best on the set, chosen on the set itself:",
            "",
            _table(tools, best),
        ]
    )


def _table(tools: dict[str, list[Row]], lines: dict[str, Cell]) -> str:
    rows = [(name, *map(cell, tools.values())) for name, cell in lines.items()]
    return markdown(("", *tools), rows)


def _f1(row: Row, name: str) -> str:
    scores = row["sets"][name]
    return f"{scores['2']['f1']:.2f} / {scores['5']['f1']:.2f}"


def _default_f1(some: Sequence[Row], name: str) -> str:
    return _f1(some[0], name)


def _best_f1(some: Sequence[Row], name: str) -> str:
    best = max(some, key=lambda row: [row["sets"][name][margin]["f1"] for margin in ("5", "2")])
    return f"{_f1(best, name)} ({best['setting']})"


def _alarms(some: Sequence[Row], name: str) -> str:
    return f"{some[0]['quiet'][name]['false_per_1000_points']:.2f}"


def _short(some: Sequence[Row], name: str) -> str:
    return f"{100 * some[0]['quiet'][name]['short_series_with_one']:.0f} %"
