"""What a search is asked for, by a person or by a night, and the search that it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.bisect.answer import Bisection
from perfci.commands.bisect.search import Asked, is_begun, search
from perfci.commands.bisect.targets import (
    Commits,
    Places,
    ReleasesOf,
    Target,
    change_of_history,
    target_of,
    trend_of_history,
)
from perfci.commands.compare import now
from perfci.commands.project import Project
from perfci.errors import MeasureError, OutsideError, PerfciError, UsageError
from perfci.trend.change import Change, Trend

if TYPE_CHECKING:
    from perfci.commands.project import Project

NO_TIME = "no time"


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """What is asked for: ``wanted`` is a range ``GOOD..BAD``, or the id of a change of ``trend``.

    ``selection`` and ``metric`` narrow down what is searched for in a range; a change has its own.
    ``history`` is where the change is. With ``package`` the range is of its releases. The other
    fields are as in ``Asked``.
    """

    wanted: str
    selection: str = ""
    metric: str = ""
    python: str | None = None
    budget_s: float = 3600.0
    restart: bool = False
    quiet: bool = False
    history: str | None = None
    package: str = ""


def bisect(project: Project, request: BisectRequest) -> Bisection:
    """Search what is asked for, going on where an earlier start ended."""
    case, metric, expected = "", request.metric, None
    places: Places
    if ".." in request.wanted:
        if request.package:
            places = ReleasesOf(project, request.package, request.wanted, request.python)
        else:
            places = Commits(project, request.wanted, request.python)
    else:
        target = _target(project, request)
        case, metric, expected = target.case, target.metric, target.ratio
        places = Commits(project, target.commits, request.python)
    asked = Asked(
        request.selection,
        case,
        metric,
        request.budget_s,
        request.restart,
        request.quiet,
        expected,
    )
    return search(project, places, asked)


def _target(project: Project, request: BisectRequest) -> Target:
    if request.package:
        raise UsageError(
            "bad-range",
            f"{request.wanted!r} is no range of releases of {request.package}",
            "Write OLDER..NEWER: perfci bisect --package torch 2.11..2.13.",
        )
    if request.selection or request.metric:
        raise UsageError(
            "change-and-case",
            f"{request.wanted!r} is a change, which has its own case and metric",
            "Leave out -k and --metric, or give a range GOOD..BAD.",
        )
    return target_of(change_of_history(project, request.wanted, request.history, now()))


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
