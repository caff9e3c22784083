"""Caveats: why a significant change may be noise, and what a reader should blame for a row. Pure.

A process may run in one of two states for as long as it lives (memory layout, alignment). The sides
may then differ only in their share of slow processes, and a t test of a few processes ignores this:
if all but one fell into the same state, their variance is tiny, and so is p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean

from perfci.finding import Finding, Reason, finding
from perfci.model.case import Metric
from perfci.model.measuring import DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import Comparison
from perfci.model.status import Cause, traits
from perfci.model.words import METHOD
from perfci.model.worker import THROTTLED
from perfci.stats.quantile import median
from perfci.stats.speeds import TwoSpeeds, two_speeds
from perfci.stats.spread import two_modes
from perfci.stats.t_tests import no_evidence, welch_t
from perfci.verdict.policy import worsening

ONE_SESSION = finding("one-session")
ONLY_PAIRS = finding("only-pairs")
_SHARE_OF_ALPHA = 0.25
"""Share of alpha for processes of two speeds. The rest is left for patterns about as unlikely."""
_GAP_REACH = 1.5
"""Two states of a process explain changes up to this many times their distance, no larger ones."""
_FEWEST_OF_A_SERVER, _SERVERS_P = 3, 0.01
"""Fewest rounds of a fork server for a test of whether they differ from others, and its level."""
_SERVERS_EXPLAIN = 10.0
"""The difference of two fork servers explains changes of up to this many times its size."""
_MOST_BY_CHANCE = 1e-6
"""Chance below which no two speeds explain that most rounds show a change."""
_THROTTLED_SHARE = 0.1
"""Share of a case's workers that a quota may have stopped in most bursts."""
_FEWEST_ROUNDS = 4
"""Fewest rounds that show two speeds: the change and the gap take two of them."""


def chance_of_separation(base: int, head: int) -> float:
    """Return the chance that every base worker is fast and every head worker slow, at worst.

    With a share ``p`` of slow processes ``p^head (1 - p)^base``, largest at ``head / (base +
    head)``: ``4^-n`` for ``n`` pairs. The values alone cannot distinguish this from a slow-down.
    """
    share = head / (base + head)
    return share**head * (1.0 - share) ** base


def may_be_process_variance(base: int, head: int, family: int, alpha: float) -> bool:
    """Say whether the chance of separation, over ``family`` comparisons, could explain a change."""
    if min(base, head) < 1:
        return True
    return max(1, family) * chance_of_separation(base, head) > _SHARE_OF_ALPHA * alpha


def rare_state(rows: Sequence[Comparison]) -> Reason | None:
    """Return the share of slow processes on head that unchanged rows can't exclude, as a reason.

    None without such rows. If n rounds show no slow process, the share of slow processes is below
    ``1 - 0.05^(1/n)``, with 95 % (Clopper & Pearson 1934, Biometrika 26:404-413).
    """
    rounds = [
        min(draws(row))
        for row in rows
        if (row.status, row.gate, row.method) == ("unchanged", "fail", "paired_t")
    ]
    if not rounds:
        return None
    share = 1.0 - 0.05 ** (1.0 / max(1, min(rounds)))
    return Reason("rare-state", arguments={"rounds": min(rounds), "share": share})


def is_unproven(row: Comparison, family: int, alpha: float) -> bool:
    """Say whether a row's change may be process variance."""
    return may_be_process_variance(*draws(row), family, alpha)


def draws(row: Comparison) -> tuple[int, int]:
    """Return how many processes base and head have."""
    base, head = (side.workers if side else 0 for side in (row.base, row.head))
    return base, head


def rounds_to_believe(family: int, alpha: float) -> int:
    """Return how many rounds rule out process variance: 5 for one comparison, 7 for twenty."""
    count = DECIDING_ROUNDS
    while may_be_process_variance(count, count, family, alpha):
        count += 1
    return count


def caveat_of_servers(
    base: Sequence[float], head: Sequence[float], servers: Sequence[int]
) -> Finding | None:
    """Return a caveat if rounds of the first fork server differ from the later ones, or None.

    None, too, if the rounds of each server show a change that is far larger than their difference.
    """
    first: list[float] = []
    later: list[float] = []
    for ratio, server in zip(_ratios(base, head), servers, strict=False):  # perhaps no ratios
        if 0.0 < ratio < math.inf:
            (first if server == servers[0] else later).append(math.log(ratio))
    if min(len(first), len(later)) < _FEWEST_OF_A_SERVER:
        return None
    p = welch_t(first, later).p
    if p is None or p >= _SERVERS_P:
        return None
    by_server = fmean(first), fmean(later)
    least, most = sorted(map(abs, by_server))
    explains = math.prod(by_server) <= 0.0 or least < _SERVERS_EXPLAIN * (most - least)
    return finding("servers-differ") if explains else None


def caveat_of_rounds(
    base: Sequence[float], head: Sequence[float], ratio: float | None
) -> Finding | None:
    """Return why pairs' change ``ratio`` may be between-process variance, or None.

    Either most rounds don't show half of the change, or the rounds fall into two groups, one with
    the change and one without it or with its opposite, as with processes of two speeds. These show
    it in a round with a chance of a quarter at most, which nearly all of twenty rounds exceed.
    """
    changes = _ratios(base, head)
    if ratio is None or ratio <= 0.0 or not changes:
        return None
    if _falls_short(median(changes), ratio):
        return finding("few-rounds-changed")
    modes = two_modes(changes)
    if modes is None:
        return None
    with_it, without_it = sorted((modes.high, modes.low), key=lambda r: _along(r, ratio))[::-1]
    reach = _GAP_REACH * abs(math.log(with_it))
    if _along(without_it, ratio) > 0.5 * abs(math.log(ratio)) or abs(math.log(without_it)) > reach:
        return None
    with_change = modes.high_count if with_it == modes.high else modes.low_count
    if _chance_of_as_many(with_change, len(changes)) < _MOST_BY_CHANCE:
        return None
    return finding("round-groups", **asdict(modes))


def _chance_of_as_many(shown: int, rounds: int) -> float:
    """Return the binomial chance of ``shown`` or more of ``rounds``, each with a chance of 1/4."""
    counts = range(shown, rounds + 1)
    return sum(
        math.comb(rounds, count) * 0.25**count * 0.75 ** (rounds - count) for count in counts
    )


def not_unchanged_reason(row: Comparison) -> Finding | None:
    """Return what keeps an interval within the margin from showing "no change", or None."""
    if row.method == "welch_t" and row.base_sessions < 2 and not row.anchors:
        return ONE_SESSION
    mean = mean_over_speeds(row)
    if mean is None or mean[1] < worsening(row).threshold:
        return None
    return finding("more-are-slow", worst=math.expm1(mean[1]), threshold=row.threshold)


def excludes_regression(row: Comparison) -> bool:
    """Say whether the row's interval excludes a regression, even an undecided row's.

    The interval from one session of a baseline is too short to exclude anything.
    """
    return worsening(row).is_not_worse and not not_unchanged_reason(row)


def caveat_of_workers(
    base: Sequence[float], head: Sequence[float], ratio: float | None
) -> Finding | None:
    """Return why the change ``ratio`` of unpaired sides may be between-process variance, or None.

    As for rounds, either the medians don't show half of the change, or there are two modes, and at
    least one side has workers in both.
    """
    values = (*base, *head)
    if ratio is None or ratio <= 0.0 or min(values, default=0.0) <= 0.0:
        return None
    if not all(map(math.isfinite, values)):
        return None
    if _falls_short(median(head) / median(base), ratio):
        return finding("few-workers-changed")
    modes = two_modes(values)
    if modes is None:
        return None
    border = math.sqrt(modes.low * modes.high)
    mixed = any(
        any(value < border for value in side) and any(value > border for value in side)
        for side in (base, head)
    )
    if not mixed or abs(math.log(ratio)) > _GAP_REACH * math.log(modes.high / modes.low):
        return None
    return finding(
        "worker-groups",
        ratio=modes.high / modes.low,
        low_count=modes.low_count,
        high_count=modes.high_count,
    )


def caveat_of_quota(outputs: Sequence[WorkerOutput]) -> Finding | None:
    """Return why a change of times may be a processor quota's, if many workers show its delays.

    It stops threads once per 0.1 s. If that fits the calls' rhythm, it may stop one side only.
    """
    throttled = sum(bool(o.bursts_disturbed) and o.disturbance == THROTTLED for o in outputs)
    many = throttled > _THROTTLED_SHARE * len(outputs)
    return finding("throttled", throttled=throttled, workers=len(outputs)) if many else None


def _ratios(base: Sequence[float], head: Sequence[float]) -> list[float]:
    values = (*base, *head)
    if len(base) != len(head) or not all(map(math.isfinite, values)):
        return []
    if min(values, default=0.0) <= 0.0:
        return []
    return [after / before for before, after in zip(base, head, strict=True)]


def _along(ratio: float, change: float) -> float:
    """Return ``ratio``'s log, with its sign inverted if ``change`` is below 1."""
    return math.log(ratio) if change >= 1.0 else -math.log(ratio)


def _falls_short(middle: float, ratio: float) -> bool:
    return _along(middle, ratio) < 0.5 * abs(math.log(ratio))


# Rounds whose processes run at two speeds are compared within each speed.


def speeds_of(metric: Metric, base: Sequence[float], head: Sequence[float]) -> TwoSpeeds | None:
    """Return the two speeds of the rounds' processes, or None if the rounds don't show them."""
    if metric.absolute or metric.direction != "lower" or min((*base, *head), default=0.0) <= 0.0:
        return None
    if no_evidence((*base, *head)) or len(base) < _FEWEST_ROUNDS:
        return None
    return two_speeds([math.log(h / b) for b, h in zip(base, head, strict=True)])


def at_one_speed(
    base: Sequence[float], head: Sequence[float], speeds: TwoSpeeds | None
) -> tuple[Sequence[float], Sequence[float]]:
    """Return both sides' values as if both processes of each round had run at one speed."""
    if speeds is None:
        return base, head
    halves = [math.exp(speeds.gap * move / 2.0) for move in speeds.moves]
    return (
        [value * half for value, half in zip(base, halves, strict=True)],
        [value / half for value, half in zip(head, halves, strict=True)],
    )


def speeds_finding(speeds: TwoSpeeds) -> Finding:
    """Return the remark that the sides were compared within two speeds of their processes."""
    return finding(
        "two-speeds",
        apart=math.exp(speeds.gap),
        head_slow=speeds.head_slow,
        base_slow=speeds.base_slow,
        rounds=len(speeds.moves),
        mean_lo=math.exp(speeds.lo),
        mean_hi=math.exp(speeds.hi),
    )


def mean_over_speeds(row: Comparison) -> tuple[float, float] | None:
    """Return the mean change over both speeds and its upper limit, or None for one speed.

    If head's processes are slow more often, the change within each speed doesn't show it.
    """
    for known in row.findings:
        if known.code == "two-speeds":
            lo, hi = (math.log(float(known.arguments[end])) for end in ("mean_lo", "mean_hi"))
            return (lo + hi) / 2.0, hi
    return None


def cause_of(row: Comparison) -> Cause:
    """Return what to blame for ``row``."""
    meaning = traits(row.status)
    if meaning.group == "undecided":
        if any(_reason(finding) in METHOD for finding in row.findings[-1:]):
            return "method"
        return "machine" if row.disturbance else meaning.cause
    return meaning.cause


def _reason(finding: Finding) -> str:
    """Return the finding's code; for a change that isn't believed, the code of the reason."""
    looks = finding.code.startswith("looks-")
    return str(finding.arguments["why"]) if looks else finding.code
