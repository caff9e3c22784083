"""The status of each tested comparison of a report, corrected for the number of comparisons.

A change is ``regressed`` or ``improved`` when the adjusted p is below alpha and the change reaches
the threshold; in a ``check`` Cohen's d must be large enough, too. ``unchanged`` has to be shown:
the interval lies within the margin. Every other row is ``inconclusive``, with a finding on what
would decide it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfci.finding import FOLLOWS, NO_EVIDENCE, Evidence, Finding, Plain, because, finding
from perfci.metrics import METRICS
from perfci.metrics.latency import TAILS
from perfci.model import inherited
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison
from perfci.model.status import Status
from perfci.model.words import JUDGED
from perfci.stats.evidence import holm
from perfci.stats.spread import detectable_difference, pairs_needed
from perfci.verdict.caveats import (
    ONE_SESSION,
    ONLY_PAIRS,
    draws,
    excludes_regression,
    is_unproven,
    not_unchanged_reason,
    rounds_to_believe,
)
from perfci.verdict.policy import Policy, margin, worsening
from perfci.verdict.shards import scaled_family

_TESTED = ("paired_t", "welch_t")
_UNTOUCHED = finding("untouched")


def adjust(
    comparisons: Sequence[Comparison], policy: Policy, scale: float = 1.0
) -> tuple[Comparison, ...]:
    """Return the comparisons with adjusted p and final status, whatever was judged before.

    Gating comparisons are corrected for the gating ones alone, so that watching more metrics
    doesn't blunt the gate; the others are corrected for all. Every comparison with a p counts:
    dropping comparisons after a look at them would undo the correction. ``scale`` is the number of
    comparisons of the whole report ÷ those here, if a shard or an early end left some out.
    """
    adjusted = list(comparisons)
    tested = [index for index, row in enumerate(comparisons) if row.method in _TESTED]
    gating = [index for index in tested if comparisons[index].gate == "fail"]
    others = [index for index in tested if comparisons[index].gate != "fail"]
    for members, family in ((set(gating), gating), (set(others), tested)):
        size = scaled_family(len(family), scale)
        p_adjusted = _adjusted_p([comparisons[index] for index in family], scale)
        for index, p in zip(family, p_adjusted, strict=True):
            if index in members:
                adjusted[index] = _judge(comparisons[index], p, policy, size)
    return _with_tails(adjusted)


def regressed_metrics(rows: Iterable[Comparison]) -> dict[str, list[str]]:
    """Return the metrics that regressed, by case."""
    regressed: dict[str, list[str]] = {}
    for row in rows:
        if row.status == "regressed":
            regressed.setdefault(row.case, []).append(row.metric)
    return regressed


def _with_tails(rows: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Show the changes of P95 and P99 in the median's row, if they are about the median's change.

    About: the two ratios differ by less than the tail's own threshold.
    """
    medians = {row.case: row for row in rows if row.metric == "latency_p50" and row.ratio}
    tails: dict[str, dict[str, Plain]] = {}
    for row in rows:
        middle = medians.get(row.case)
        if row.metric in TAILS and row.ratio and middle and _follows(row, middle):
            tails.setdefault(row.case, {})[row.metric] = row.ratio

    def with_tail(row: Comparison) -> Comparison:
        of_case = tails.get(row.case, {})
        if row.metric in of_case:
            return row.noting(finding(FOLLOWS, metric="latency_p50"))
        if row is medians.get(row.case) and of_case:
            shown = {TAILS[metric]: ratio for metric, ratio in of_case.items()}
            return row.noting(finding("tails", **shown))
        return row

    return tuple(map(with_tail, rows))


def _follows(tail: Comparison, middle: Comparison) -> bool:
    if tail.status != middle.status or tail.status not in {"regressed", "improved"}:
        return False
    return abs(worsening(tail).change - worsening(middle).change) < worsening(tail).threshold


def _adjusted_p(rows: Sequence[Comparison], scale: float) -> list[float | None]:
    known = [row.p for row in rows if row.p is not None]
    corrected = iter(holm(known, scaled_family(len(known), scale)))
    return [None if row.p is None else next(corrected) for row in rows]


def _judge(row: Comparison, p_adjusted: float | None, policy: Policy, family: int) -> Comparison:
    alpha = policy.alpha / max(1, family)
    row = replace(
        row,
        p_adjusted=p_adjusted,
        detectable=_detectable(row, alpha),
        findings=tuple(known for known in row.findings if known.code not in JUDGED),
    )
    worse = worsening(row)
    judged: tuple[Finding, ...] = ()
    if p_adjusted is not None and p_adjusted < policy.alpha and not math.isnan(worse.change):
        moved: Status = "regressed" if worse.change > 0.0 else "improved"
        if not _is_large(row, policy):
            judged = (finding("small-effect", least=policy.cohens_d),)
        elif not worse.reaches:
            judged = (_below_threshold(row),)
        elif why_not := _disbelief_reason(row, policy, family):
            judged = (because(f"looks-{moved}", why_not),)
        else:
            return row.noting(*_overstatement(row), status=moved)
    if worse.is_within or worse.lo == worse.hi == 0.0:
        why_not = not_unchanged_reason(row)
        if not why_not:
            return row.noting(*judged, status="unchanged")
        judged = (*judged, because("looks-unchanged", why_not))
    judged = judged or (_too_few(row) or _no_regression(row) or _what_it_takes(row, alpha),)
    return row.noting(*judged, status="inconclusive")


def _below_threshold(row: Comparison) -> Finding:
    """Return the finding on a significant change whose estimate is below the threshold."""
    worse = worsening(row)
    code = "at-threshold" if worse.hi >= worse.threshold else "below-threshold"
    return finding(code, **_threshold_arguments(row))


def _overstatement(row: Comparison) -> tuple[Finding, ...]:
    """Return the remark that a regression may be below its threshold, if its interval says so.

    Such changes are reported only if the estimate reaches the threshold. So the reported estimates
    are too large on average (type M error: Gelman & Carlin 2014, Perspectives on Psychological
    Science 9:641-651).
    """
    change, lo, _, threshold = worsening(row)
    if not 0.0 < lo < threshold <= change:
        return ()
    least = lo if row.difference is not None else math.expm1(lo)
    return (finding("may-be-overstated", least=least, **_threshold_arguments(row)),)


def _disbelief_reason(row: Comparison, policy: Policy, family: int) -> Finding | None:
    """Return what keeps a significant change from counting, or None."""
    if row.caveat:
        return row.caveat
    if row.anchors:
        return ONLY_PAIRS
    if row.method == "welch_t" and row.base_sessions < 2:
        return ONE_SESSION
    base, head = draws(row)
    if not is_unproven(row, family, policy.alpha):
        return None
    needed = rounds_to_believe(family, policy.alpha)
    if row.method == "welch_t":
        return finding("few-workers", base=base, head=head, needed=needed, setting=_setting(row))
    return finding("few-rounds", rounds=base, needed=needed, setting=_setting(row))


def _is_large(row: Comparison, policy: Policy) -> bool:
    """Say whether the effect is large against the spread of the sides, or beyond the threshold.

    The effect of pairs always counts as large: the sides' spread includes the drift of the machine,
    which pairs cancel. An interval that lies wholly beyond the threshold is enough by itself
    (minimum-effect test: Murphy & Myors 1999, Journal of Applied Psychology 84:234-248).
    """
    if row.method == "paired_t":
        return True
    if row.cohens_d is None:
        return False
    return worsening(row).is_beyond or abs(row.cohens_d) >= policy.cohens_d


def _detectable(row: Comparison, alpha: float) -> float | None:
    """Return the change that this comparison could have detected at the family's alpha.

    The first of ``m`` comparisons that Holm calls significant has ``p < alpha / m``.
    """
    if row.difference is not None or row.se is None or row.df is None:
        return row.detectable
    return math.expm1(min(detectable_difference(row.se, row.df, alpha), 690.0))


def _too_few(row: Comparison) -> Finding | None:
    """Return a finding if a side has fewer workers than an interval needs, else None."""
    fewest = min(side.workers if side else 0 for side in (row.base, row.head))
    if not 0 < fewest < DECIDING_ROUNDS:
        return None
    what = "round" if row.method == "paired_t" else "worker"
    return finding(
        "too-few", count=fewest, what=what, needed=DECIDING_ROUNDS, setting=_setting(row)
    )


def _no_regression(row: Comparison) -> Finding | None:
    """Return a finding if the interval of pairs or anchors excludes a regression, else None.

    Such a row gets no more rounds, because no verdict asks whether it is better or unchanged.
    """
    if not (row.method == "paired_t" or row.anchors) or not excludes_regression(row):
        return None
    return finding("no-regression", **_threshold_arguments(row))


def _what_it_takes(row: Comparison, alpha: float) -> Finding:
    if row.p is None or row.detectable is None:
        return finding("no-evidence")
    if row.method == "welch_t":
        return finding("measure-together", change=row.detectable)
    pairs = row.pairs
    if row.difference is not None or row.se is None or row.threshold <= 0.0:
        return finding("detectable", change=row.detectable)
    rounds = pairs_needed(row.se * math.sqrt(pairs), math.log(margin(row.threshold)[1]), alpha)
    if rounds is None:
        return finding("out-of-reach", change=row.detectable, threshold=row.threshold)
    if rounds <= pairs:
        return finding("near-threshold", change=row.detectable, **_threshold_arguments(row))
    return finding(
        "more-rounds",
        change=row.detectable,
        threshold=row.threshold,
        rounds=rounds,
        setting=_setting(row),
    )


def _setting(row: Comparison) -> str:
    """Return the setting that gives the row's metric more rounds."""
    return METRICS[row.metric].rounds_setting if row.metric in METRICS else "rounds"


def _threshold_arguments(row: Comparison) -> dict[str, Plain]:
    """Return the row's threshold as arguments: an amount with its unit, or a share without one."""
    in_unit: dict[str, Plain] = {} if row.difference is None else {"unit": row.unit}
    return {"threshold": row.threshold, **in_unit}


def suspects(rows: Sequence[Comparison], policy: Policy) -> tuple[str, ...]:
    """Return the cases that a stored baseline doesn't decide, and that are measured in pairs.

    A case is suspect if a gating row regressed, if an undecided row would make the verdict
    inconclusive or looks improved, or if a row that may stay undecided (cold start) is worse by its
    threshold.
    """
    cases = [row.case for row in rows if row.gate == "fail" and _is_suspect(row, policy)]
    return tuple(dict.fromkeys(cases))


def _is_suspect(row: Comparison, policy: Policy) -> bool:
    if row.status != "inconclusive":
        return row.status == "regressed"
    worse = worsening(row)
    if worse.looks_worse:
        return True
    if policy.undecided(row.metric) != "inconclusive":
        return False
    return worse.change <= -worse.threshold or not excludes_regression(row)


def may_be_untouched(rows: Sequence[Comparison]) -> bool:
    """Say whether no row shows a change, or lacks a side.

    Counts agree, and no metric that may fail the report moved by more than its threshold. Tails
    don't count: the P99 of one round differs by more than that between identical sides.
    """
    return all(
        row.status == "unchanged"
        if row.method == "exact"
        else row.method == "paired_t"
        and not (row.gate == "fail" and row.metric not in TAILS and _moved(row))
        for row in rows
    )


def untouched_rows(rows: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return the rows as ``untouched``, without a test. Each side's own number stays.

    Counts, and rows that warn and moved by more than their threshold, stay as they were compared.
    """
    untested = inherited(Evidence, replace(NO_EVIDENCE, findings=(_UNTOUCHED,)))
    return tuple(
        row
        if row.method == "exact" or (row.gate != "info" and _moved(row))
        else replace(row, status="untouched", caveat=None, **untested)
        for row in rows
    )


def moved_untouched(row: Comparison) -> bool:
    """Say whether an ``untouched`` row's two numbers differ by more than its threshold."""
    if row.status != "untouched" or row.base is None or row.head is None:
        return False
    base, head = row.base.center, row.head.center
    if base is None or head is None:
        return False
    absolute = row.metric in METRICS and METRICS[row.metric].absolute
    if absolute or base <= 0.0 or head <= 0.0:
        return abs(head - base) > row.threshold
    return abs(math.log(head / base)) > math.log1p(row.threshold)


def _moved(row: Comparison) -> bool:
    """Say whether the row changed by more than its threshold, or by an unknown amount."""
    worse = worsening(row)
    return math.isnan(worse.change) or abs(worse.change) > worse.threshold
