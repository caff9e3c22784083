"""Reasons why a case moved, those first that explain most."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from perfci.errors import UsageError
from perfci.instruments import LAST, instruments
from perfci.metrics import Family, MovedCase, families
from perfci.model.case import Case
from perfci.model.finding import Difference
from perfci.model.report import Comparison, Explanation
from perfci.model.worker import WorkerOutput

MOST_DIFFERENCES = 20
_LONGEST_FILE = 20_000
"""Lines of a file that is compared; a longer one is generated."""
_TIMED = {"operator-calls", "operator-tensors", "python-time"}
_LEAST_OF_MOST = 0.02
"""A timed difference on a changed line is light below this share of the heaviest one."""
_MOVES = {
    "import_time": ("import_time", "cold_start"),
    "compile_time": ("compile_time", "cold_start"),
    "peak_host_memory": ("peak_host_memory", "host_memory_over_setup"),
    "graph-new": ("graph_breaks", "recompiles", "latency", "compile_time"),
    "graph-gone": ("graph_breaks", "recompiles", "latency", "compile_time"),
}
"""The beginnings of the metrics that a difference moves, by its code, or else its metric."""


def ranked(
    differences: Iterable[Difference], moved: Sequence[Comparison]
) -> tuple[Difference, ...]:
    """Return the differences, those first that explain the rows that ``moved``.

    Then those on a changed line, unless they are light, and then those that weigh most. An
    instrument's place decides between differences without a weight. A difference that isn't exact
    counts only where it goes the way of a row, which was measured in many processes.
    """
    places = {name: instrument.place for name, instrument in instruments().items()}

    def explains_any(difference: Difference) -> bool:
        return any(explains(difference, row) for row in moved)

    believed = [
        difference for difference in differences if difference.exact or explains_any(difference)
    ]
    exact = (each for each in believed if each.exact and (explains_any(each) or not moved))
    most_s = max((abs(difference.seconds) for difference in exact), default=0.0)

    def is_light(difference: Difference) -> bool:
        return difference.code in _TIMED and abs(difference.seconds) < _LEAST_OF_MOST * most_s

    def rank(difference: Difference) -> tuple[bool, bool, float, float, int]:
        return (
            bool(moved) and not explains_any(difference),
            not difference.hunk or is_light(difference),
            -abs(difference.seconds),
            -abs(difference.bytes),
            places.get(difference.instrument, LAST),
        )

    return tuple(sorted(believed, key=rank)[:MOST_DIFFERENCES])


def leading(
    differences: Sequence[Difference], moved: Iterable[Comparison]
) -> tuple[Difference, ...]:
    """Return the first of ranked differences, and the first that explains each row that moved.

    A difference that goes the other way than all rows explains none of them, however large it is.
    """
    rows = tuple(moved)
    along = (
        each for each in differences if not rows or any(_goes_along(each, row) for row in rows)
    )
    leads = [next(along, None)]
    leads += [next((each for each in differences if explains(each, row)), None) for row in rows]
    distinct: list[Difference] = []
    for lead in leads:
        if lead is not None and lead not in distinct:
            distinct.append(lead)
    return tuple(distinct)


def explains(difference: Difference, row: Comparison) -> bool:
    """Say whether a difference moves the row's metric the way that the row moved."""
    metrics = (
        _MOVES.get(difference.code) or _MOVES.get(difference.metric) or (difference.metric or "?",)
    )
    return row.metric.startswith(metrics) and _goes_along(difference, row)


def _goes_along(difference: Difference, row: Comparison) -> bool:
    worse = 1 if row.direction == "lower" else -1
    way = worse if row.status == "regressed" else -worse
    return (difference.seconds or difference.bytes) * way >= 0


def size(row: Comparison) -> float:
    """Return how large a change is, for an order of cases: a share of base."""
    return 0.0 if row.ratio is None or row.ratio <= 0 else abs(math.log(row.ratio))


def changed_lines(base: str, head: str) -> frozenset[int]:
    """Return the lines of ``head``, from 1, that were changed, and those around removed lines."""
    old, new = base.splitlines(), head.splitlines()
    if max(len(old), len(new)) > _LONGEST_FILE:
        return frozenset()
    changed: set[int] = set()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag == "delete":
            changed |= {start, start + 1}
        elif tag != "equal":
            changed |= set(range(start + 1, end + 1))
    return frozenset(changed)


def with_hunks(
    differences: Sequence[Difference], changed: Mapping[str, frozenset[int]]
) -> tuple[Difference, ...]:
    """Return the differences, marked where their line is among those ``changed``, by file."""
    return tuple(
        replace(difference, hunk=difference.line in changed.get(difference.file, frozenset()))
        if difference.file
        else difference
        for difference in differences
    )


def explain(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    comparisons: Sequence[Comparison],
) -> tuple[Explanation, ...]:
    """Return the changes inside the case that explain which of its ``comparisons`` regressed.

    The last family comes first. A graph break says more than the phase that it made longer.
    """
    regressed = tuple(
        row.metric for row in comparisons if row.case == case.id and row.status == "regressed"
    )
    if not regressed or not base or not head:
        return ()
    moved = MovedCase(case.id, regressed, base, head)
    return tuple(
        explanation for family in reversed(families()) for explanation in _explained(family, moved)
    )


def _explained(family: Family, moved: MovedCase) -> tuple[Explanation, ...]:
    """Return a family's explanations, or that another distribution's family is broken."""
    try:
        return family.ask("its explain", lambda: tuple(map(_checked, family.explain(moved))))
    except UsageError as error:
        its_own = (metric for metric in moved.regressed if metric in family.about)
        metric = next(its_own, moved.regressed[0])
        return (Explanation(moved.case, metric, "broken_plugin", error.message),)


def _checked(explanation: Explanation) -> Explanation:
    if not isinstance(explanation, Explanation):
        raise TypeError(f"{repr(explanation)[:80]} is no Explanation")
    return explanation
