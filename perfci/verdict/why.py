"""Why a case moved: what explains most goes first."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from perfci.errors import UsageError
from perfci.instruments import LAST, instruments
from perfci.metrics import Family, Moved, families
from perfci.model.case import Case
from perfci.model.finding import Difference
from perfci.model.report import Comparison, Explanation
from perfci.model.worker import WorkerOutput

MOST_DIFFERENCES = 20
_LONGEST_FILE = 20_000
"""Lines of a file that is compared; a longer one is generated."""
_TIMED = {"operator-calls", "operator-tensors", "python-time"}
_LEAST_OF_MOST = 0.02
"""What is timed on a changed line and takes less of what the heaviest difference does is light."""
_MOVES = {
    "import_time": ("import_time", "cold_start"),
    "compile_time": ("compile_time", "cold_start"),
    "peak_host_memory": ("peak_host_memory", "host_memory_over_setup"),
    "graph-new": ("graph_breaks", "recompiles", "latency", "compile_time"),
    "graph-gone": ("graph_breaks", "recompiles", "latency", "compile_time"),
}
"""How the names of the metrics begin that a difference moves, by its code, or else its metric."""


def ranked(found: Iterable[Difference], moved: Sequence[Comparison]) -> tuple[Difference, ...]:
    """Return the differences, what explains the rows that ``moved`` first.

    What goes their way, before what moves something else; what lies on a changed line before the
    rest, unless it is light; then what weighs most. An instrument's place decides between what has
    no weight. What isn't exact counts only where it goes the way of a row: that was measured in
    many processes.
    """
    places = {name: one.place for name, one in instruments().items()}

    def explains_any(one: Difference) -> bool:
        return any(explains(one, row) for row in moved)

    believed = [one for one in found if one.exact or explains_any(one)]
    exact = [one for one in believed if one.exact and (explains_any(one) or not moved)]
    most_s = max((abs(one.seconds) for one in exact), default=0.0)

    def is_light(one: Difference) -> bool:
        return one.code in _TIMED and abs(one.seconds) < _LEAST_OF_MOST * most_s

    def rank(one: Difference) -> tuple[bool, bool, float, float, int]:
        return (
            bool(moved) and not explains_any(one),
            not one.hunk or is_light(one),
            -abs(one.seconds),
            -abs(one.bytes),
            places.get(one.instrument, LAST),
        )

    return tuple(sorted(believed, key=rank)[:MOST_DIFFERENCES])


def leading(found: Sequence[Difference], moved: Iterable[Comparison]) -> tuple[Difference, ...]:
    """Return of ranked differences the first, and of each row that moved the first of its own.

    What goes the other way than all rows explains none of them, however large it is.
    """
    rows = tuple(moved)
    own = (next((one for one in found if explains(one, row)), None) for row in rows)
    along = (one for one in found if not rows or any(_goes_along(one, row) for row in rows))
    leads = [one for one in (next(along, None), *own) if one is not None]
    return tuple(one for number, one in enumerate(leads) if one not in leads[:number])


def explains(one: Difference, row: Comparison) -> bool:
    """Whether it moves the row's metric, the way that the row moved."""
    metrics = _MOVES.get(one.code) or _MOVES.get(one.metric) or (one.metric or "?",)
    return row.metric.startswith(metrics) and _goes_along(one, row)


def _goes_along(one: Difference, row: Comparison) -> bool:
    worse = 1 if row.direction == "lower" else -1
    way = worse if row.status == "regressed" else -worse
    return (one.seconds or one.bytes) * way >= 0


def size(row: Comparison) -> float:
    """Return how large a change is, for an order of cases: a share of base."""
    return 0.0 if row.ratio is None or row.ratio <= 0 else abs(math.log(row.ratio))


def changed_lines(base: str, head: str) -> frozenset[int]:
    """Return the lines of ``head``, from 1, that ``base`` doesn't have so; where lines are gone,
    those around them.
    """
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
    found: Sequence[Difference], changed: Mapping[str, frozenset[int]]
) -> tuple[Difference, ...]:
    """Return the differences; those whose line is ``changed``, by file, say so."""
    return tuple(
        replace(one, hunk=one.line in changed.get(one.file, frozenset())) if one.file else one
        for one in found
    )


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
