"""Why a case's metrics regressed, as each module of metrics explains it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.errors import UsageError
from perfci.metrics import MetricGroup, MovedCase, metric_groups
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Explanation


def explain(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    comparisons: Sequence[Comparison],
) -> tuple[Explanation, ...]:
    """Return explanations of why metrics of this case regressed in ``comparisons``.

    The last group's come first: a graph break says more than the phase that it made longer.
    """
    regressed = tuple(
        row.metric for row in comparisons if row.case == case.id and row.status == "regressed"
    )
    if not regressed or not base or not head:
        return ()
    moved = MovedCase(case.id, regressed, base, head)
    return tuple(
        explanation
        for group in reversed(metric_groups())
        for explanation in _explanations_of(group, moved)
    )


def _explanations_of(group: MetricGroup, moved: MovedCase) -> tuple[Explanation, ...]:
    """Return a group's explanations. If a plugin's group is broken, the explanation says so."""
    try:
        return group.ask("explain", lambda: tuple(group.explain(moved)))
    except UsageError as error:
        about = (metric for metric in moved.regressed if metric in group.about)
        metric = next(about, moved.regressed[0])
        return (Explanation(moved.case, metric, "broken_plugin", error.message),)
