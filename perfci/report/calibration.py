"""A calibration in words, for the terminal and as files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from perfci.calibrate import Calibration, SeenMetric
from perfci.model.codec import to_plain
from perfci.report.clean import Clean, clean_line, clean_prose, clean_styled
from perfci.report.exporters.json import json_text
from perfci.report.templates import LIMIT, cut, markdown_environment, read_template
from perfci.report.terminal import text_console, wrapped
from perfci.units import (
    counted,
    first_of,
    format_change,
    format_duration,
    format_share,
    format_value,
)

MAIN_METRIC = "latency_p50"
_TAILS = frozenset({"latency_p95", "latency_p99"})
"""Metrics that tables list last."""
LEGEND = (
    "spread: of one round's change. sees: the smallest change that a session finds in 95 % of runs."
)


def headline(calibration: Calibration) -> str:
    """Return the main result: the smallest changes that this machine detects, and bimodal cases."""
    rows = [row for row in calibration.seen if row.metric == MAIN_METRIC]
    known = sorted((row.detectable, row.case) for row in rows if row.detectable is not None)
    if not known:
        text = "this machine sees nothing yet"
    elif len(known) == 1:
        text = f"this machine sees {share(known[0][0])} on {known[0][1]}"
    else:
        (least, easy), (most, hard) = known[0], known[-1]
        text = f"this machine sees {share(least)} at best ({easy}), {share(most)} at worst ({hard})"
    bimodal = sum(row.modes is not None for row in rows)
    if bimodal:
        text += f"; {counted(bimodal, 'case')} {'is' if bimodal == 1 else 'are'} bimodal"
    if not known:
        return text
    session = calibration.session
    return (
        f"{text} ({session.rounds} to {session.max_rounds} rounds in "
        f"{format_duration(session.budget_s)}, {counted(session.comparisons, 'comparison')})"
    )


def share(value: float | None) -> str:
    """Return a share with two digits: spreads aren't known more precisely."""
    return format_share(None if value is None else float(f"{value:.2g}"))


def seen_cells(row: SeenMetric) -> tuple[str, ...]:
    """Return a metric's cells: pairs, spread, smallest change seen, threshold."""
    return (str(row.pairs), share(row.spread), share(row.detectable), share(row.threshold))


def modes_text(row: SeenMetric) -> str:
    """Return both modes with the share of workers in each, or nothing."""
    if row.modes is None:
        return ""
    low, high = (format_value(value, row.unit) for value in (row.modes.low, row.modes.high))
    upper = row.modes.share_high
    return (
        f"{row.case} {row.metric} has two modes: {low} in {share(1.0 - upper)} of workers, "
        f"{high} ({format_change(row.modes.high / row.modes.low)}) in {share(upper)}"
    )


def disturbance_text(calibration: Calibration) -> str:
    """Return what disturbed the measurement most."""
    most = calibration.disturbance
    if most is None:
        return "Nothing disturbed the bursts."
    return f"Most disturbing: {most.reason}, in {most.bursts} of {most.measured} bursts."


def alarms_text(calibration: Calibration) -> str:
    """Return how often identical sides were called different."""
    gating = [row for row in calibration.seen if row.gate == "fail"]
    alarms = sum(row.false_alarm for row in gating)
    return (
        f"{counted(alarms, 'false alarm')} in {counted(len(gating), 'comparison')} of identical "
        f"sides; chance alone gives one in {share(calibration.session.alpha)} of reports."
    )


def blind_text(calibration: Calibration) -> str:
    """Return which gating thresholds are too small to see here with the present configuration."""
    gating = [row for row in calibration.seen if row.gate == "fail"]
    if by_metric := _by_metric(row for row in gating if row.sees_threshold is False):
        return "Below what can be seen: " + "; ".join(
            f"{metric}'s threshold in {counted(len(rows), 'case')} "
            f"({first_of([row.case for row in rows], 3)}), where "
            f"{_range([row.detectable for row in rows])} is seen"
            for metric, rows in by_metric.items()
        )
    if not any(row.sees_threshold for row in gating):
        return "Whether any threshold can be seen is not known: too little was measured."
    unknown = sum(row.sees_threshold is None for row in gating)
    return "Every threshold whose spread is known can be seen" + (
        f"; of {unknown} it isn't known." if unknown else "."
    )


def spent_text(calibration: Calibration) -> str:
    """Return how long the calibration took."""
    took, given = format_duration(calibration.wall_s), format_duration(calibration.budget_s)
    return f"{calibration.rounds} rounds in {took} of {given}"


def render_calibration_json(calibration: Calibration) -> Clean:
    """Return the calibration as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(calibration)
    return json_text({"schema": plain.pop("schema"), **plain})


def render_calibration_markdown(calibration: Calibration, limit: int = LIMIT) -> str:
    """Return the calibration as GitHub Markdown, at most ``limit`` characters long."""
    environment = markdown_environment()
    environment.globals |= {"cells": seen_cells, "modes": modes_text}
    template = environment.from_string(read_template("calibration.md.j2"))
    main, others = _main_and_others(calibration)
    return cut(
        template.render(
            calibration=calibration,
            headline=headline(calibration),
            legend=LEGEND,
            main=main,
            others=others,
            bimodal=[row for row in calibration.seen if row.modes],
            remarks=_remarks(calibration),
            spent=spent_text(calibration),
        ),
        limit,
    )


def render_calibration(
    calibration: Calibration, width: int, color: bool, *, verbose: bool = False
) -> Clean:
    """Return the calibration in ``width`` columns. ``verbose`` shows every metric of every case."""
    out = io.StringIO()
    console = text_console(out, max(60, width), color=color)
    for part in _parts(calibration, console.width, verbose=verbose):
        console.print(part, overflow="fold")
    return clean_styled(out.getvalue())


def _parts(calibration: Calibration, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    def prose(text: str, style: str = "", indent: int = 0) -> Iterator[Text]:
        return wrapped(clean_prose(text, 600), indent, width, style)

    yield from prose(
        f"perfci: {headline(calibration)}", "bold red" if calibration.untrusted else "bold"
    )
    for caveat in calibration.untrusted:
        yield from prose(f"don't rely on this: {caveat}", "red", 2)
    yield Text()
    main, others = _main_and_others(calibration)
    if main:
        yield Text(f"{MAIN_METRIC}, the median latency of one call:", "bold")
        yield _seen_table(main, with_metric=False)
        yield from prose(LEGEND, "dim")
        yield Text()
    if others:
        yield _seen_table(others, with_metric=True) if verbose else _ranges(others)
        yield Text()
    for row in calibration.seen:
        if row.modes:
            yield from prose(modes_text(row), "yellow")
    for remark in _remarks(calibration):
        yield from prose(remark)
    for failure in calibration.failures:
        text = f"{failure.case} failed in {failure.stage} ({failure.kind}): {failure.message}"
        yield from prose(text, "red")
    for note in calibration.notes:
        yield from prose(f"note: {note}", "dim")
    yield Text()
    yield Text(spent_text(calibration), "dim")


def _remarks(calibration: Calibration) -> tuple[str, ...]:
    return (
        disturbance_text(calibration),
        alarms_text(calibration),
        blind_text(calibration),
    )


def _main_and_others(calibration: Calibration) -> tuple[list[SeenMetric], list[SeenMetric]]:
    """Return the rows of median latency, and the rows of all other metrics, P95 and P99 last."""
    main = [row for row in calibration.seen if row.metric == MAIN_METRIC]
    others = [row for row in calibration.seen if row.metric != MAIN_METRIC]
    return main, sorted(others, key=lambda row: row.metric in _TAILS)


def _by_metric(rows: Iterable[SeenMetric]) -> dict[str, list[SeenMetric]]:
    by_metric: dict[str, list[SeenMetric]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    return by_metric


def _range(values: Sequence[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    low, high = share(known[0]), share(known[-1])
    return low if low == high else f"{low.removesuffix(' %')} … {high}"


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        table.add_column(
            name,
            justify="left" if index < left else "right",
            overflow="fold",
            no_wrap=index >= left,
        )
    return table


def _seen_table(rows: Sequence[SeenMetric], *, with_metric: bool) -> Table:
    head = ("case", "metric") if with_metric else ("case",)
    table = _table(*head, "pairs", "spread", "sees", "threshold", left=len(head))
    for row in rows:
        name = (clean_line(row.case), clean_line(row.metric))[: len(head)]
        table.add_row(*map(Text, name), *seen_cells(row), style="yellow" if row.modes else "")
    return table


def _ranges(rows: Sequence[SeenMetric]) -> Table:
    table = _table("metric", "spread", "sees", "threshold")
    for metric, mine in _by_metric(rows).items():
        columns = ("spread", "detectable", "threshold")
        cells = (_range([getattr(row, name) for row in mine]) for name in columns)
        table.add_row(Text(clean_line(metric)), *cells)
    return table
