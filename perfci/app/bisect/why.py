"""Why a culprit is one: it and what was before it run once more, under instruments."""

from __future__ import annotations

from perfci.app.bisect.places import Places
from perfci.app.compare import Request, selected_cases
from perfci.app.project import Project
from perfci.errors import PerfciError
from perfci.model.bisection import Bisection, Culprit, NamedCommit, moved_row
from perfci.model.why import Why
from perfci.session.explaining import explain_case
from perfci.session.opening import open_workplace
from perfci.session.state import case_states

WHY_S = 30.0
"""What looking inside of a culprit takes at most, beside the case's own run time."""


def why_of(
    project: Project, places: Places, found: Bisection, culprit: Culprit, within_s: float
) -> Why:
    """Return what differs inside of the case between a culprit and what was before it.

    Whatever fails here is untold: the answer stands.
    """
    before, after = NamedCommit(culprit.before, ""), culprit.commits[-1]
    sides = (places.side("base", before), places.side("head", after))
    around = project.surroundings()
    try:
        with open_workplace(around, sides, benchmarks_of=places.benchmarks_of) as workplace:
            cases = selected_cases(workplace, Request(only=(found.case,)))
            (state,) = case_states(cases, ("base", "head"))
            project.caller.step(f"looking inside {after.short} …")
            return explain_case(
                workplace.plan,
                workplace.executor,
                state.case,
                state.slug,
                (moved_row(found, culprit),),
                within_s=within_s,
            )
    except PerfciError as error:
        return Why(found.case, untold={"": error.message})
