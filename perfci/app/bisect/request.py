"""What ``perfci bisect`` is asked for, and the search that it means."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.app.bisect.change import change_of_history, target_of
from perfci.app.bisect.commits import Commits
from perfci.app.bisect.search import Asked, search
from perfci.app.compare import now
from perfci.app.project import Project
from perfci.errors import UsageError
from perfci.model.bisection import Bisection


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """What is asked for: ``wanted`` is a range ``GOOD..BAD``, or the id of a change of ``trend``.

    ``selection`` and ``metric`` narrow down what is searched for in a range; a change has its own.
    ``history`` is where the change is. The other fields are as in ``Asked``.
    """

    wanted: str
    selection: str = ""
    metric: str = ""
    python: str | None = None
    budget_s: float = 3600.0
    restart: bool = False
    quiet: bool = False
    history: str | None = None


def bisect(project: Project, request: BisectRequest) -> Bisection:
    """Search what is asked for, going on where an earlier start ended."""
    if ".." in request.wanted:
        commits, case, metric = request.wanted, "", request.metric
    else:
        if request.selection or request.metric:
            raise UsageError(
                "change-and-case",
                f"{request.wanted!r} is a change, which has its own case and metric",
                "Leave out -k and --metric, or give a range GOOD..BAD.",
            )
        target = target_of(change_of_history(project, request.wanted, request.history, now()))
        commits, case, metric = target.commits, target.case, target.metric
    asked = Asked(request.selection, case, metric, request.budget_s, request.restart, request.quiet)
    return search(project, Commits(project, commits, request.python), asked)
