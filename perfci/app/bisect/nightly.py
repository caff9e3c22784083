"""What a night searches for by itself: the commits of changes that the trend just found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.app.bisect.change import target_of, trend_of_history
from perfci.app.bisect.commits import Commits
from perfci.app.bisect.search import Asked, is_begun, search
from perfci.errors import MeasureError, OutsideError, PerfciError, UsageError
from perfci.model.bisection import Bisection
from perfci.trend.change import Change, Trend

if TYPE_CHECKING:
    from perfci.app.project import Project

NO_TIME = "no time"


@dataclass(frozen=True, slots=True)
class Searched:
    """A change of the trend and the answer of its search, or ``why_not``."""

    change: Change
    answer: Bisection | None = None
    why_not: str = ""


def search_new(
    project: Project,
    history: str | None,
    environment: str,
    *,
    now: str,
    budget_s: float,
    python: str | None = None,
) -> tuple[Searched, ...]:
    """Search for the commits of new changes in this environment, within the budget.

    The worst first, then those of which an earlier night had begun the search. Several changes of
    one place are searched for once, as the worst of them. ``now`` is ISO 8601 in UTC.
    """
    end = project.caller.executor.now() + budget_s
    found: list[Searched] = []
    for change, new in _candidates(trend_of_history(project, history, now), environment):
        try:
            target = target_of(change)
            places = Commits(project, target.commits, python)
            left = end - project.caller.executor.now()
            asked = Asked("", target.case, target.metric, left, quiet=True, expected=target.ratio)
            if not new and not is_begun(project, places, asked):
                continue
            one = Searched(change, why_not=NO_TIME)
            if left > 0.0:
                one = Searched(change, search(project, places, asked))
        except (MeasureError, UsageError, OutsideError) as error:
            if isinstance(error, OutsideError) and error.slug != "search-running":
                raise
            one = Searched(change, why_not=_why_not(error))
        found.append(one)
        if one.answer is not None and one.answer.ended == "interrupted":
            break
    return tuple(found)


def _why_not(error: PerfciError) -> str:
    return NO_TIME if error.slug == "budget-too-short" else error.message


def _candidates(trend: Trend, environment: str) -> Iterator[tuple[Change, bool]]:
    """Yield the worst change of each open event of the code, and whether it is new."""
    worst = [
        one.changes[0]
        for one in trend.events
        if one.kind == "code" and one.environment == environment
    ]
    steps = [one for one in worst if one.kind == "step" and one.status in {"new", "known"}]
    steps.sort(key=lambda one: (one.status != "new", not one.worse, -(one.cost or 0.0)))
    yield from ((one, one.status == "new") for one in steps)
