"""A calibration in words, for the terminal and as JSON."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from perfci.calibrate import Calibration, SeenMetric
from perfci.model.codec import to_plain
from perfci.report.clean import Clean, clean_line, clean_styled
from perfci.report.exporters.json import json_text
from perfci.report.terminal import text_console, wrapped
from perfci.units import counted, format_duration, format_share

_MAIN = "latency_p50"
"""The metric of the headline."""
_LEGEND = (
    "spread: of one round's change. sees: the smallest change that a session finds in 95 % of runs."
)


def headline(calibration: Calibration) -> str:
    """Return the main result: the smallest changes that this machine detects."""
    rows = [row for row in calibration.seen if row.metric == _MAIN]
    known = sorted((row.detectable, row.case) for row in rows if row.detectable is not None)
    if not known:
        return "nothing can be detected yet"
    text = f"this machine sees {_share(known[0][0])} on {known[0][1]}"
    if len(known) > 1:
        text += f" and {_share(known[-1][0])} on {known[-1][1]}, the least and the most"
    rounds = f"in {calibration.session.least} to {calibration.session.most} rounds"
    family = counted(calibration.comparisons, "comparison")
    return f"{text} ({rounds}, as one of the {family} of a whole session)"


def render_calibration_json(calibration: Calibration) -> Clean:
    """Return the calibration as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(calibration)
    return json_text({"schema": plain.pop("schema"), **plain})


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
        return wrapped(text, indent, width, style)

    yield from prose(
        f"perfci: {headline(calibration)}", "bold red" if calibration.untrusted else "bold"
    )
    for caveat in calibration.untrusted:
        yield from prose(f"don't rely on this: {caveat}", "red", 2)
    yield Text()
    shown = [row for row in calibration.seen if verbose or row.metric == _MAIN or row.blind]
    if shown:
        yield _table(shown)
        yield from prose(_LEGEND, "dim")
        yield Text()
    yield from prose(
        f"Most disturbing: {calibration.disturbance}."
        if calibration.disturbance
        else "Nothing disturbed the bursts."
    )
    alarms = sum(row.false_alarm for row in calibration.seen)
    yield from prose(
        f"False alarms: {alarms} of the {counted(len(calibration.seen), 'metric')} calibrated "
        "here, on identical sides."
    )
    if blind := sum(row.blind for row in calibration.seen):
        yield from prose(f"{counted(blind, 'threshold')} below what this machine sees (yellow).")
    for failure in calibration.failures:
        text = f"{failure.case} failed in {failure.stage} ({failure.kind}): {failure.message}"
        yield from prose(text, "red")
    for note in calibration.notes:
        yield from prose(f"note: {note}", "dim")
    yield Text()
    yield Text(f"{calibration.rounds} rounds in {format_duration(calibration.wall_s)}", "dim")


def _share(value: float | None) -> str:
    """Return a share with two digits: spreads aren't known more precisely."""
    return format_share(None if value is None else float(f"{value:.2g}"))


def _table(rows: list[SeenMetric]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("case", "metric"):
        table.add_column(name, overflow="fold")
    for name in ("pairs", "spread", "sees", "threshold"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        shares = map(_share, (row.spread, row.detectable, row.threshold))
        names = (Text(clean_line(row.case)), Text(clean_line(row.metric)))
        table.add_row(*names, str(row.pairs), *shares, style="yellow" if row.blind else "")
    return table
