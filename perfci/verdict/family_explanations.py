"""Explanations of a case's regressions by the families of metrics, from workers' outputs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.errors import UsageError
from perfci.metrics import Family, MovedCase, families
from perfci.model.case import Case
from perfci.model.report import Comparison, Explanation
from perfci.model.worker import WorkerOutput


def explain(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    comparisons: Sequence[Comparison],
) -> tuple[Explanation, ...]:
    """Return what explains why metrics of this case regressed, by its ``comparisons``.

    The last family comes first: a graph break says more than the phase that it made longer.
    """
    regressed = tuple(
        row.metric for row in comparisons if row.case == case.id and row.status == "regressed"
    )
    if not regressed or not base or not head:
        return ()
    moved = MovedCase(case.id, regressed, base, head)
    return tuple(
        explanation
        for family in reversed(families())
        for explanation in _explanations_of(family, moved)
    )


def _explanations_of(family: Family, moved: MovedCase) -> tuple[Explanation, ...]:
    """Return a family's explanations, or that another distribution's family is broken."""
    try:
        return family.ask("its explain", lambda: tuple(map(_checked, family.explain(moved))))
    except UsageError as error:
        about = (metric for metric in moved.regressed if metric in family.about)
        metric = next(about, moved.regressed[0])
        return (Explanation(moved.case, metric, "broken_plugin", error.message),)


def _checked(explanation: Explanation) -> Explanation:
    if not isinstance(explanation, Explanation):
        raise TypeError(f"{repr(explanation)[:80]} is no Explanation")
    return explanation
