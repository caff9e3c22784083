"""A report as a notebook shows it: in one line, as an HTML table and as a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError
from perfci.model.status import traits
from perfci.units import counted, format_change, format_difference, format_interval, format_value

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Report

_COLOURS: Mapping[str, str] = {
    "red": "#b3261e",
    "green": "#1e7b34",
    "yellow": "#8a6100",
    "dim": "#777777",
    "": "#444444",
}
"""HTML colours by the ``style`` of ``model.status.Traits``."""
_COLUMNS = ("case", "metric", "status", "base", "head", "change", "95 % interval")


def line(report: Report) -> str:
    """Return the report's sides, its verdict and the number of rows by status."""
    sides = " → ".join(side.sha[:10] or side.rev for side in (report.base, report.head) if side)
    statuses = Counter(row.status for row in report.results)
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in statuses.items())
    status = "run" if report.is_one_sided else report.verdict.status
    failed = f"; {counted(len(report.failures), 'failure')}" if report.failures else ""
    return f"<perfci {report.command} {sides}: {status}; {counts or 'no rows'}{failed}>"


def table(report: Report) -> str:
    """Return an HTML table of the rows that moved or are undecided, and of latency."""
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report.verdict.reasons[:5])
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = sorted(_shown(report), key=lambda row: traits(row.status).rank)
    body = "".join(
        f'<tr style="color:{_colour(row)}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row))
        + "</tr>"
        for row in rows
    )
    title = f"<b>perfci: {escape(report.verdict.status)}</b><ul>{reasons}</ul>"
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plot(report: Report, metric: str, axes: Any) -> Any:
    """Draw each case's change with its interval, and return the axes."""
    rows = [row for row in report.results if row.metric == metric and row.ratio is not None]
    if not rows:
        raise UsageError(
            "nothing-to-plot",
            f"no case has a change of {metric} in this report",
            "Name another metric: report.plot('cold_start').",
        )
    if axes is None:
        axes = _new_axes(len(rows))
    for place, row in enumerate(reversed(rows)):
        lo, middle, hi = (_percent(x) for x in (row.ratio_lo, row.ratio, row.ratio_hi))
        ends = [middle if end is None else end for end in (lo, hi)]
        axes.plot(ends, [place, place], color=_colour(row))
        axes.plot([middle], [place], marker="o", color=_colour(row))
    axes.axvline(0.0, color=_COLOURS["dim"], linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.case for row in reversed(rows)])
    axes.set_xlabel(f"change of {metric} in %, with its 95 % interval")
    return axes


def _new_axes(rows: int) -> Any:
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        raise UsageError(
            "no-matplotlib",
            "report.plot() draws with matplotlib, which is not installed here",
            "Install it next to perfci: python -m pip install matplotlib.",
        ) from error
    _, axes = plt.subplots(figsize=(8.0, 1.0 + 0.35 * rows), layout="constrained")
    return axes


def _shown(report: Report) -> Iterator[Comparison]:
    """Yield the rows of median latency, and all that gate or warn and aren't unchanged."""
    for row in report.results:
        if row.metric == "latency_p50" or (row.status != "unchanged" and row.gate != "info"):
            yield row


def _cells(row: Comparison) -> Sequence[str]:
    sides = (format_value(side.center, row.unit) if side else "" for side in (row.base, row.head))
    if row.difference is not None:
        return (row.case, row.metric, row.status, *sides,
                format_difference(row.difference, row.unit), "")  # fmt: skip
    change = "" if row.ratio is None else format_change(row.ratio)
    known = row.ratio_lo is not None and row.ratio is not None
    interval = format_interval(row.ratio_lo, row.ratio_hi, like=row.ratio) if known else ""
    return (row.case, row.metric, row.status, *sides, change, interval)


def _colour(row: Comparison) -> str:
    return _COLOURS[traits(row.status).style]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100.0 * (ratio - 1.0)
