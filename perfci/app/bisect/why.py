"""Why a culprit is one: it and what was before it run once more, under instruments."""

from __future__ import annotations

from perfci.app.bisect.places import Places
from perfci.app.compare import Request, selected_cases
from perfci.app.project import Project
from perfci.errors import PerfciError
from perfci.model.bisection import Bisection, Culprit, NamedCommit
from perfci.model.report import Comparison
from perfci.model.why import Why
from perfci.session.explaining import explain_case
from perfci.session.opening import open_workplace
from perfci.session.state import case_states

_WITHIN_S = 30.0


def why_of(project: Project, places: Places, found: Bisection, culprit: Culprit) -> Why:
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
                (_row(found, culprit),),
                within_s=_WITHIN_S,
            )
    except PerfciError as error:
        return Why(found.case, untold={"": error.message})


def _row(found: Bisection, culprit: Culprit) -> Comparison:
    """Return the change as a row of a report: what explains it comes first."""
    grew = (culprit.ratio or 1.0) > 1.0 or (culprit.difference or 0.0) > 0.0
    return Comparison(
        case=found.case,
        metric=found.metric,
        unit=found.unit,
        status="improved" if culprit.improved else "regressed",
        gate="info",
        method="none",
        base=None,
        head=None,
        ratio=culprit.ratio,
        ratio_lo=None,
        ratio_hi=None,
        threshold=0.0,
        p=None,
        p_adjusted=None,
        cohens_d=None,
        detectable=None,
        direction="higher" if grew == culprit.improved else "lower",
    )
