"""Beside what moved in a report: what the history says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from perfci.app.notices import Say
from perfci.errors import PerfciError

if TYPE_CHECKING:
    from perfci.checkout.repository import Repository
    from perfci.model.report import Report

_LAST = 20
_MOST_ROWS = 50


def with_past(
    report: Report,
    place: str,
    repository: Repository | None,
    aliases: Mapping[str, str],
    say: Say,
) -> Report:
    """Return ``report`` with the newest values that the history at ``place`` has of what moved.

    Of the runs of the default branch, under the case's name or one of before an alias renamed it.
    The verdict doesn't rest on them: a history that can't be read is said, and stops nothing.
    """
    from perfci.history.history import open_history
    from perfci.model.report import Past
    from perfci.render.outline import outline
    from perfci.trend.timeline.series import SeriesKey
    from perfci.trend.timeline.timelines import earlier_names
    from perfci.verdict.report import build_report, opened

    moved = outline(report).moved[:_MOST_ROWS]
    names = {
        SeriesKey(report.environment.key, row.case, row.metric): earlier_names(row.case, aliases)
        for row in moved
    }
    if not names:
        return report
    named = repository.default_base() if repository else None
    branch = (named or "main").removeprefix("origin/")
    try:
        with open_history(place, create=False) as history:
            newest = history.newest(names, _LAST, branch)
    except PerfciError as error:
        say(f"perfci: the report is without its history: {error.message}", err=True)
        return report
    past = (Past(key.case, key.metric, values) for key, values in newest.items())
    measured, decided = opened(report)
    return build_report(measured, replace(decided, past=tuple(past)))
