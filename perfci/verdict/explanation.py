"""Why a comparison regressed, as far as the workers themselves can say."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.errors import UsageError
from perfci.metrics import Family, Moved, families
from perfci.model.case import Case
from perfci.model.report import Comparison, Explanation
from perfci.model.worker import WorkerOutput


def explain(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    comparisons: Sequence[Comparison],
) -> tuple[Explanation, ...]:
    """Return what got worse inside, for those of ``comparisons`` of this case that regressed.

    The last family is asked first: a graph break says more than the phase that it made longer.
    """
    regressed = tuple(
        row.metric for row in comparisons if row.case == case.id and row.status == "regressed"
    )
    if not regressed or not base or not head:
        return ()
    moved = Moved(case.id, regressed, base, head)
    return tuple(one for family in reversed(families()) for one in _explained(family, moved))


def _explained(family: Family, moved: Moved) -> tuple[Explanation, ...]:
    """Another distribution's that can't explain says so in its place: the report goes on."""
    try:
        return family.ask("its explain", lambda: tuple(map(_checked, family.explain(moved))))
    except UsageError as error:
        metric = next((one for one in moved.regressed if one in family.about), moved.regressed[0])
        return (Explanation(moved.case, metric, "broken_plugin", error.message),)


def _checked(one: Explanation) -> Explanation:
    if not isinstance(one, Explanation):
        raise TypeError(f"{repr(one)[:80]} is no Explanation")
    return one
