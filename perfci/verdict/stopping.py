"""When an interval has settled on which side of the margin around "no change" it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from perfci.metrics import METRICS
from perfci.model.case import Case
from perfci.model.report import Comparison
from perfci.model.settings import DECIDING_ANCESTORS, DECIDING_ROUNDS, ROUNDS_OF_AN_ANCESTOR
from perfci.verdict.caveats import ancestors_differ, draws, is_unproven, why_not_unchanged
from perfci.verdict.margin import is_beyond, is_within, threshold_of, worse_by
from perfci.verdict.policy import Policy

_ENOUGH_WITHOUT_SPREAD = 10


def is_decided(lo: float, hi: float, p: float | None, threshold: float, level: float) -> bool:
    """Say whether a change needs no further round.

    ``lo`` and ``hi`` are the report's own interval, corrected for the looks, of a logarithm or a
    difference. It is decided where that lies within the margin; or wholly beyond one of its ends,
    and ``p`` is below ``level`` (alpha ÷ the report's gating comparisons, what Holm asks of the
    first of them): a session that ended earlier would call a clear slow-down inconclusive. p alone
    never stops a session: one that measures on until p is small finds a regression in any noise.
    """
    if is_within(lo, hi, threshold):
        return True
    return is_beyond(lo, hi, threshold) and p is not None and p < level


def wants_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether more rounds could still decide what a paired ``row`` says of the code.

    Beside an undecided interval: a change that would be believed but for its few rounds, or for
    a caveat that more rounds may remove.
    Ten rounds without any spread are followed by more of the same.
    """
    pairs = row.base.workers if row.base else 0
    if row.p is None and pairs >= _ENOUGH_WITHOUT_SPREAD:
        return False
    _, lo, hi = worse_by(row)
    if why_not_unchanged(row) or lo is None or hi is None:
        return True
    level, threshold = policy.alpha / max(1, family), threshold_of(row)
    if not is_decided(lo, hi, row.p, threshold, level):
        return True
    return is_beyond(lo, hi, threshold) and (bool(row.caveat) or awaits_rounds(row, policy, family))


def awaits_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether a paired ``row`` shows a change that its few rounds alone keep from counting.

    Too few for an interval, it is enough that head looks worse by the threshold.
    """
    change, lo, hi = worse_by(row)
    if lo is None or hi is None:
        return change is not None and _too_few(row) and change >= threshold_of(row)
    return is_beyond(lo, hi, threshold_of(row)) and is_unproven(row, family, policy.alpha)


def _too_few(row: Comparison) -> bool:
    pairs = row.base.workers if row.base else 0
    return pairs < DECIDING_ROUNDS or min(draws(row)) < DECIDING_ANCESTORS


# Pure: whether a case needs more rounds. The rule looks at intervals, never at p.


def undecided_metrics(
    comparisons: Iterable[Comparison], case: Case, policy: Policy, family: int
) -> tuple[str, ...]:
    """Return the metrics that need more rounds: those that would leave the verdict inconclusive.

    A gating metric that policy lets pass undecided (cold start: half an import of torch is
    noise) prolongs a session only while it is worse by its threshold, sure or not; and not where
    it doesn't get more rounds (only the first ones compile anew).
    ``family`` is how many gating comparisons the report will have.
    """
    rows = [row for row in comparisons if row.method == "paired_t" and row.metric in METRICS]
    return tuple(
        row.metric
        for row in rows
        if (rule := policy.for_metric(METRICS[row.metric], case)).gate == "fail"
        and (
            wants_rounds(row, policy, family)
            if rule.undecided == "inconclusive"
            else METRICS[row.metric].rounds_setting == "rounds"
            and _looks_worse(row)
            and wants_rounds(row, policy, family)
        )
    )


def looking_worse(rows: Iterable[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Return what looks worse by its threshold, sure or not, of what must not stay undecided."""
    return tuple(
        row
        for row in rows
        if row.gate == "fail"
        and policy.undecided(row.metric) == "inconclusive"
        and _looks_worse(row)
    )


def _looks_worse(row: Comparison) -> bool:
    change, _, _ = worse_by(row)
    return change is not None and change >= threshold_of(row)


# Pure: how many rounds of a case come from one ancestor.


def rounds_of_ancestor(
    comparisons: Iterable[Comparison], undecided: Collection[str], *, rounds: int, least: int
) -> int:
    """Return how many rounds the next ancestor gives a case that has ``rounds``.

    Each of the ``least`` rounds has an ancestor of its own: they are independent, and so as many as
    can be. After them an ancestor, which costs about as much as a round, gives two; but one alone
    where ancestors differ, or a change in an undecided metric has to be believed: there its second
    round says little. The alternatives: docs/results/ancestors.md.
    """
    rows = [row for row in comparisons if row.metric in undecided]
    if rounds < least or any(map(ancestors_differ, rows)) or any(map(_reaches, rows)):
        return 1
    return ROUNDS_OF_AN_ANCESTOR


def _reaches(row: Comparison) -> bool:
    change, _, _ = worse_by(row)
    return change is not None and abs(change) >= threshold_of(row)
