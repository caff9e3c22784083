"""A calibration in words, for the terminal and as files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from perfci.calibrate import Calibration, SeenMetric, SettingTrial, Suggestion
from perfci.config.loading import PROJECT_FILE
from perfci.model.codec import to_plain
from perfci.report.clean import Clean, Safe, clean_line, clean_prose, clean_styled
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
_HELPED = {"helps": "helps", "hurts": "makes it worse", "unknown": "unclear"}
LEGEND = (
    "spread: of one round's change. sees: the smallest change that a session finds in 95 % of "
    "runs. promises: the same, where the spread is as large as it may be. rounds: how many show "
    "so small a change."
)
MAIN_TITLE = f"{MAIN_METRIC}, the median latency of one call:"
_MOST_CASES = 2
"""Cases whose detectable slow-down is given: those that see least."""
_MOST_BLIND = 3
"""Gates that are named as blind: the noisiest."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A TOML key that needs no quotes."""
_HELPED_STYLES = {"helps": "green", "hurts": "red", "unknown": "", "left_out": "dim"}
_KEPT_STYLES = {"kept": "green", "not_kept": "bold red", "not_checked": "yellow"}


def headline(calibration: Calibration) -> str:
    """Return the main result: the smallest changes that this machine detects, and bimodal cases."""
    rows, _ = _main_and_others(calibration)
    known = sorted(
        (row.detectable, row.case)
        for row in rows
        if row.detectable is not None and row.modes is None
    )
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


def answers(calibration: Calibration) -> tuple[str, ...]:
    """Return what a gate on this machine finds, and which gates are blind.

    The first lines are of the cases that see least. Each has a second line, indented by two blanks,
    with the rounds that smaller changes need.
    """
    known = [
        row
        for row in _main_and_others(calibration)[0]
        if row.detectable is not None and row.spread and row.modes is None
    ]
    lines = []
    for row in sorted(known, key=lambda row: -(row.detectable or 0.0))[:_MOST_CASES]:
        lines += [
            (
                f"{row.case}: a slow-down of {share(row.detectable)} or more is found "
                f"(19 runs of 20); {_own_gate(row)}"
            ),
            (
                f"  rounds to see 5 %: {rounds(row.rounds_5, row)}, "
                f"2 %: {rounds(row.rounds_2, row)}, 1 %: {rounds(row.rounds_1, row)} "
                f"(noise of one round: {share(row.spread)})"
            ),
        ]
    blind = [
        row
        for row in calibration.seen
        if row.gate == "fail" and row.sees_threshold is False and row.metric != MAIN_METRIC
    ]
    blind.sort(key=lambda row: -(row.detectable or 0.0))
    lines += [
        f"{row.case} {row.metric}: only +{share(row.detectable)} would be seen; its gate of "
        f"{share(row.threshold)} is blind here"
        for row in blind[:_MOST_BLIND]
        if row.detectable is not None
    ]
    return tuple(lines)


def _own_gate(row: SeenMetric) -> str:
    if row.gate != "fail":
        return "it gates nothing"
    blind = ", which is blind here" if row.sees_threshold is False else ""
    return f"its gate is {share(row.threshold)}{blind}"


def _main_and_others(calibration: Calibration) -> tuple[list[SeenMetric], list[SeenMetric]]:
    """Return the rows of median latency, and the rows of all other metrics, P95 and P99 last."""
    main = [row for row in calibration.seen if row.metric == MAIN_METRIC]
    others = [row for row in calibration.seen if row.metric != MAIN_METRIC]
    return main, sorted(others, key=lambda row: row.metric in _TAILS)


def share(value: float | None) -> str:
    """Return a share with two digits: spreads aren't known more precisely."""
    return format_share(None if value is None else float(f"{value:.2g}"))


def rounds(count: int | None, row: SeenMetric) -> str:
    """Return the rounds that a change needs, as text. ``count`` None: more than are possible."""
    if not row.spread or count is None:
        return "–"
    return str(count) if count < 1000 else "over 999"


def seen_cells(row: SeenMetric) -> tuple[str, ...]:
    """Return a metric's cells: pairs, spread, seen and promised changes, rounds for 1, 2, 5 %."""
    shares = (row.spread, row.detectable, row.promised)
    needed = (row.rounds_1, row.rounds_2, row.rounds_5)
    return (str(row.pairs), *map(share, shares), *(rounds(count, row) for count in needed))


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


def alarms_text(calibration: Calibration) -> str:
    """Return the false alarms seen and expected."""
    alarms = calibration.false_alarms
    text = (
        f"{counted(alarms.alarms, 'false alarm')} in {counted(alarms.comparisons, 'comparison')} "
        f"of identical sides; chance alone gives one in {share(alarms.expected)} of reports. "
        f"p below 0.05: {alarms.below_5_percent}, expected {0.05 * alarms.comparisons:.1f}"
    )
    odd = alarms.below_5_percent and alarms.chance < 0.01
    return text + (f" (chance {share(alarms.chance)}: more than chance)." if odd else ".")


def setting_text(trial: SettingTrial) -> str:
    """Return the effect of switching one setting off."""
    if trial.helped == "left_out":
        return f"left out: {trial.reason}"
    low, high = (f"{value:.2g}" if value else "–" for value in (trial.lo, trial.hi))
    ratio = "–" if trial.ratio is None else f"{trial.ratio:.2g}"
    return f"spread without it × {ratio} ({low} to {high}): {_HELPED[trial.helped]}"


def promise_text(calibration: Calibration) -> str:
    """Return whether the promise was kept."""
    promise = calibration.promise
    if promise.status == "not_checked":
        return f"not tested: {promise.reason}"
    outcome = "kept" if promise.status == "kept" else "NOT KEPT"
    return (
        f"{outcome}: promised {share(promise.promised)}, injected {share(promise.injected)} into "
        f"{promise.metric}, found in {promise.found} of {counted(promise.counted, 'case')}"
        + (f" ({promise.reason})" if promise.reason else "")
    )


def spent_text(calibration: Calibration) -> str:
    """Return how long the calibration took, in total and by step."""
    spent = calibration.spent
    return (
        f"{spent.rounds} rounds in {format_duration(spent.wall_s)} "
        f"of {format_duration(spent.budget_s)}: "
        f"identical sides {format_duration(spent.same_s)}, "
        f"settings {format_duration(spent.settings_s)}, "
        f"promise {format_duration(spent.promise_s)}"
    )


def _by_metric(rows: Iterable[SeenMetric]) -> dict[str, list[SeenMetric]]:
    by_metric: dict[str, list[SeenMetric]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    return by_metric


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


def suggestion_text(suggestion: Suggestion) -> str:
    """Return the present value of the suggestion's key, and the reason for the new one."""
    value = suggestion.before
    before = "" if value is None else f"now {value if isinstance(value, int) else share(value)}; "
    return f"{before}{suggestion.reason}"


def _range(values: Sequence[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    low, high = share(known[0]), share(known[-1])
    return low if low == high else f"{low.removesuffix(' %')} … {high}"


def render_calibration_json(calibration: Calibration) -> Clean:
    """Return the calibration as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(calibration)
    return json_text({"schema": plain.pop("schema"), **plain})


def writable(suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    """Return the suggestions that the configuration can hold."""
    return tuple(suggestion for suggestion in suggestions if not suggestion.where)


def toml_lines(calibration: Calibration) -> str:
    """Return the TOML of the suggestions that the configuration can hold, or ""."""
    prefix = ("tool", "perfci") if calibration.configuration.endswith(PROJECT_FILE) else ()
    tables: dict[tuple[str, ...], list[str]] = {}
    for suggestion in writable(calibration.suggestions):
        table = (*prefix, *suggestion.path[:-1])
        tables.setdefault(table, []).append(f"{_key(suggestion.path[-1])} = {suggestion.value!r}")
    blocks = []
    for table, lines in tables.items():
        header = [f"[{'.'.join(map(_key, table))}]"] if table else []
        blocks.append("\n".join([*header, *lines]))
    return "\n\n".join(blocks)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def render_calibration_markdown(calibration: Calibration, limit: int = LIMIT) -> str:
    """Return the calibration as GitHub Markdown, at most ``limit`` characters long."""
    environment = markdown_environment()
    environment.globals |= {
        "cells": seen_cells,
        "modes": modes_text,
        "setting": setting_text,
        "why": suggestion_text,
    }
    template = environment.from_string(read_template("calibration.md.j2"))
    toml = toml_lines(calibration)
    main, others = _main_and_others(calibration)
    return cut(
        template.render(
            calibration=calibration,
            headline=headline(calibration),
            answers=answers(calibration),
            legend=LEGEND,
            main=main,
            others=others,
            bimodal=[row for row in calibration.seen if row.modes],
            promise=promise_text(calibration),
            blind=blind_text(calibration),
            alarms=alarms_text(calibration),
            suggestions=calibration.suggestions,
            # safe as it is: only numbers, and keys of letters, digits, `_`, `.` and `-`
            toml=Safe(f"```toml\n{toml}\n```") if toml else "",
            spent=spent_text(calibration),
        ),
        limit,
    )


def render_calibration(
    calibration: Calibration,
    width: int,
    color: bool,
    *,
    verbose: bool = False,
) -> Clean:
    """Return the calibration in ``width`` columns. ``verbose`` shows every metric of every case."""
    out = io.StringIO()
    console = text_console(out, max(60, width), color=color)
    for part in _parts(calibration, console.width, verbose=verbose):
        console.print(part, overflow="fold")
    return clean_styled(out.getvalue())


def _parts(calibration: Calibration, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    style = "bold red" if calibration.untrusted else "bold"
    yield from wrapped(f"perfci: {clean_prose(headline(calibration), 600)}", 0, width, style)
    for caveat in calibration.untrusted:
        yield from wrapped(f"don't rely on this: {clean_prose(caveat, 600)}", 2, width, "red")
    yield Text()
    if lines := answers(calibration):
        for line in lines:
            yield from wrapped(clean_prose(line, 600), 4 if line.startswith(" ") else 2, width)
        yield Text()
    main, others = _main_and_others(calibration)
    if main:
        yield Text(MAIN_TITLE, "bold")
        yield _seen_table(main, with_metric=False)
        yield from wrapped(LEGEND, 0, width, "dim")
    if others:
        yield Text()
        yield _seen_table(others, with_metric=True) if verbose else _ranges(others)
    if bimodal := [row for row in calibration.seen if row.modes]:
        yield Text()
    for row in bimodal:
        yield from wrapped(clean_prose(modes_text(row), 600), 0, width, "yellow")
    yield Text()
    settings = _table("setting", "switched off", left=2)
    for trial in calibration.settings:
        style = _HELPED_STYLES[trial.helped]
        settings.add_row(Text(trial.setting), Text(setting_text(trial)), style=style)
    yield settings
    yield Text()
    yield from wrapped(
        f"promise {clean_prose(promise_text(calibration), 600)}",
        0,
        width,
        _KEPT_STYLES[calibration.promise.status],
    )
    yield from wrapped(alarms_text(calibration), 0, width)
    yield from _suggestions(calibration, width)
    if calibration.failures or calibration.notes:
        yield Text()
    for failure in calibration.failures:
        text = f"{failure.case} failed in {failure.stage} ({failure.kind}): {failure.message}"
        yield from wrapped(clean_prose(text, 600), 0, width, "red")
    for note in calibration.notes:
        yield from wrapped(f"note: {clean_prose(note, 600)}", 0, width, "dim")
    yield Text()
    yield Text(spent_text(calibration), "dim")


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
    columns = ("pairs", "spread", "sees", "promises", "rounds: 1 %", "2 %", "5 %")
    table = _table(*head, *columns, left=len(head))
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


def _suggestions(calibration: Calibration, width: int) -> Iterator[Text]:
    yield from wrapped(clean_prose(blind_text(calibration), 600), 0, width)
    if not calibration.suggestions:
        return
    yield Text()
    if writable(calibration.suggestions):
        into = clean_line(calibration.configuration)
        yield Text(f"suggested for {into} (paste what follows):", "bold")
    for line in toml_lines(calibration).splitlines():
        yield Text(f"  {line}".rstrip())
    yield Text()
    for suggestion in calibration.suggestions:
        place = f"{suggestion.where}: " if suggestion.where else ""
        value = (
            suggestion.value
            if isinstance(suggestion.value, int)
            else format_share(suggestion.value)
        )
        text = f"{place}{'.'.join(suggestion.path)} {value}: {suggestion_text(suggestion)}"
        yield from wrapped(clean_prose(text, 600), 2, width, "dim")
