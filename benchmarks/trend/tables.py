"""The scores as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Row = dict
Cell = Callable[[Sequence[Row]], str]


def tables(rows: Sequence[Row]) -> str:
    """Return two tables: each tool as it comes, and each at its best setting for each set."""
    tools: dict[str, list[Row]] = {}
    for row in rows:
        tools.setdefault(row["tool"], []).append(row)
    names = list(rows[0]["sets"])
    quiet = list(rows[0]["quiet"])
    plain: list[tuple[str, Cell]] = [(f"F1, {name}", _default_f1(name)) for name in names]
    plain += [(f"false alarms per 1,000 quiet points, {name}", _alarms(name)) for name in quiet]
    plain += [
        (f"quiet series of 100 points with an alarm, {quiet[-1]}", _short(quiet[-1])),
        ("changes named in 6 unlabelled series of sunpy", lambda some: str(sum(some[0]["sunpy"]))),
        ("CPU time for a series of 365 points", lambda some: f"{some[0]['ms_per_series']:.1f} ms"),
    ]
    best = [(f"F1, {name}", _best_f1(name)) for name in names]
    return "\n".join(
        [
            "Each tool at its defaults; F1 at a margin of 2 / of 5 points:",
            "",
            *_table(tools, plain),
            "",
            "Each tool at the setting that does best on the set, chosen on the set itself:",
            "",
            *_table(tools, best),
        ]
    )


def _table(tools: dict[str, list[Row]], lines: Sequence[tuple[str, Cell]]) -> list[str]:
    made = ["| | " + " | ".join(tools) + " |", "|---" * (len(tools) + 1) + "|"]
    made += [
        f"| {name} | " + " | ".join(cell(some) for some in tools.values()) + " |"
        for name, cell in lines
    ]
    return made


def _f1(row: Row, name: str) -> str:
    scores = row["sets"][name]
    return f"{scores['2']['f1']:.2f} / {scores['5']['f1']:.2f}"


def _default_f1(name: str) -> Cell:
    return lambda some: _f1(some[0], name)


def _best_f1(name: str) -> Cell:
    def cell(some: Sequence[Row]) -> str:
        best = max(
            some, key=lambda row: (row["sets"][name]["5"]["f1"], row["sets"][name]["2"]["f1"])
        )
        return f"{_f1(best, name)} ({best['setting']})"

    return cell


def _alarms(name: str) -> Cell:
    return lambda some: f"{some[0]['quiet'][name]['false_per_1000_points']:.2f}"


def _short(name: str) -> Cell:
    return lambda some: f"{100 * some[0]['quiet'][name]['short_series_with_one']:.0f} %"
