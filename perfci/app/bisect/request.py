"""What ``perfci bisect`` is asked for, and the search that it means."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.app.bisect.change import Target, change_of_history, target_of
from perfci.app.bisect.commits import Commits
from perfci.app.bisect.places import Places
from perfci.app.bisect.releases import ReleasesOf
from perfci.app.bisect.search import Asked, search
from perfci.app.compare import now
from perfci.app.project import Project
from perfci.errors import UsageError
from perfci.model.bisection import Bisection


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
