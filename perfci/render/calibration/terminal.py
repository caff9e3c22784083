"""A calibration for people at a terminal: what this machine sees first, the rest under it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from perfci.model.calibration import Calibration, Seen
from perfci.render.calibration import text as words
from perfci.render.calibration.files import toml_lines, writable
from perfci.render.clean import Clean, clean_line, clean_prose, clean_styled
from perfci.render.terminal import text_console, wrapped
from perfci.units import format_share

_HELPED_STYLES = {"helps": "green", "hurts": "red", "unknown": "", "left_out": "dim"}
_KEPT_STYLES = {"kept": "green", "not_kept": "bold red", "not_checked": "yellow"}


def render_calibration(
    calibration: Calibration,
    width: int,
    color: bool,
    *,
    verbose: bool = False,
) -> Clean:
    """Return the calibration in ``width`` columns; ``verbose`` shows every metric of every case."""
    out = io.StringIO()
    console = text_console(out, max(60, width), color=color)
    for part in _parts(calibration, console.width, verbose=verbose):
        console.print(part, overflow="fold")
    return clean_styled(out.getvalue())


def _parts(calibration: Calibration, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    style = "bold red" if calibration.untrusted else "bold"
    yield from wrapped(f"perfci: {clean_prose(words.headline(calibration), 600)}", 0, width, style)
    for caveat in calibration.untrusted:
        yield from wrapped(f"don't rely on this: {clean_prose(caveat, 600)}", 2, width, "red")
    yield Text()
    if answers := words.answers(calibration):
        for line in answers:
            yield from wrapped(clean_prose(line, 600), 4 if line.startswith(" ") else 2, width)
        yield Text()
    if main := words.main_rows(calibration):
        yield Text(words.MAIN_TITLE, "bold")
        yield _seen_table(main, with_metric=False)
        yield from wrapped(words.LEGEND, 0, width, "dim")
    others = (*words.other_rows(calibration), *words.tail_rows(calibration))
    if verbose and others:
        yield Text()
        yield _seen_table(others, with_metric=True)
    elif others:
        yield Text()
        yield _ranges(others)
    yield from _modes(calibration, width)
    yield Text()
    yield _settings(calibration)
    yield Text()
    yield from wrapped(
        f"promise {clean_prose(words.promise_text(calibration), 600)}",
        0,
        width,
        _KEPT_STYLES[calibration.promise.status],
    )
    yield from wrapped(words.alarms_text(calibration), 0, width)
    yield from _suggestions(calibration, width)
    if calibration.failures or calibration.notes:
        yield Text()
    for failure in calibration.failures:
        said = f"{failure.case} failed in {failure.stage} ({failure.kind}): {failure.message}"
        yield from wrapped(clean_prose(said, 600), 0, width, "red")
    for note in calibration.notes:
        yield from wrapped(f"note: {clean_prose(note, 600)}", 0, width, "dim")
    yield Text()
    yield Text(words.spent_text(calibration), "dim")


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


def _seen_table(rows: Sequence[Seen], *, with_metric: bool) -> Table:
    head = ("case", "metric") if with_metric else ("case",)
    table = _table(
        *head, "pairs", "spread", "sees", "promises", "1 %", "2 %", "5 %", left=len(head)
    )
    for row in rows:
        name = (clean_line(row.case), clean_line(row.metric))[: len(head)]
        table.add_row(
            *map(Text, name),
            str(row.pairs),
            words.share(row.spread),
            words.share(row.detectable),
            words.share(row.promised),
            *(words.rounds(count, row) for count in (row.rounds_1, row.rounds_2, row.rounds_5)),
            style="yellow" if row.modes else "",
        )
    table.columns[-3].header = "rounds: 1 %"
    return table


def _ranges(rows: Sequence[Seen]) -> Table:
    table = _table("metric", "spread", "sees", "threshold")
    for metric, *cells in words.metric_ranges(rows):
        table.add_row(Text(clean_line(metric)), *cells)
    return table


def _modes(calibration: Calibration, width: int) -> Iterator[Text]:
    bimodal = [row for row in calibration.seen if row.modes is not None]
    if bimodal:
        yield Text()
    for row in bimodal:
        yield from wrapped(clean_prose(words.modes_text(row), 600), 0, width, "yellow")


def _settings(calibration: Calibration) -> Table:
    table = _table("setting", "switched off", left=2)
    for trial in calibration.settings:
        style = _HELPED_STYLES[trial.helped]
        table.add_row(Text(trial.setting), Text(words.setting_text(trial)), style=style)
    return table


def _suggestions(calibration: Calibration, width: int) -> Iterator[Text]:
    yield from wrapped(clean_prose(words.blind_text(calibration), 600), 0, width)
    if not calibration.suggestions:
        return
    yield Text()
    if writable(calibration.suggestions):
        into = clean_line(calibration.configuration)
        yield Text(f"suggested for {into} (paste what follows):", "bold")
    for line in toml_lines(calibration).splitlines():
        yield Text(f"  {line}".rstrip())
    yield Text()
    for one in calibration.suggestions:
        place = f"{one.where}: " if one.where else ""
        value = one.value if isinstance(one.value, int) else format_share(one.value)
        text = f"{place}{'.'.join(one.path)} {value}: {words.suggestion_text(one)}"
        yield from wrapped(clean_prose(text, 600), 2, width, "dim")
