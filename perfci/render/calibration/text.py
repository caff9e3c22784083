"""A calibration in words, the same in every format: unescaped, each format escapes its own way."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.model.calibration import Calibration, Seen, SettingTrial, Suggestion
from perfci.units import counted, format_change, format_duration, format_share, format_value

MAIN_METRIC = "latency_p50"
_TAILS = frozenset({"latency_p95", "latency_p99"})
_HELPED = {"helps": "helps", "hurts": "makes it worse", "unknown": "unclear"}


LEGEND = (
    "spread: of one round's change. sees: the smallest change that a session finds in 95 % of "
    "runs. promises: the same, where the spread is as large as it may be. rounds: how many show "
    "so small a change."
)
MAIN_TITLE = f"{MAIN_METRIC}, the median latency of one call:"


def headline(calibration: Calibration) -> str:
    """Return the one thing that matters: what this machine sees, and what stands in the way."""
    rows = main_rows(calibration)
    known = sorted(
        (row.detectable, row.case)
        for row in rows
        if row.detectable is not None and row.modes is None
    )
    if not known:
        text = "this machine sees nothing yet"
    elif len(known) == 1:
        text = f"this machine sees {share(known[0][0])} on {known[0][1]}"
    else:
        (least, easy), (most, hard) = known[0], known[-1]
        text = f"this machine sees {share(least)} at best ({easy}), {share(most)} at worst ({hard})"
    bimodal = sum(row.modes is not None for row in rows)
    if bimodal:
        text += f"; {counted(bimodal, 'case')} {'is' if bimodal == 1 else 'are'} bimodal"
    return f"{text} ({session_text(calibration)})" if known else text


_MOST_CASES = 2
_MOST_BLIND = 3


def answers(calibration: Calibration) -> tuple[str, ...]:
    """Return what a gate here finds: of the cases that see least, then which gates are blind.

    A second line of a case, with the rounds that smaller changes take, begins with two blanks.
    """
    known = [
        row
        for row in main_rows(calibration)
        if row.detectable is not None and row.spread and row.modes is None
    ]
    lines = []
    for row in sorted(known, key=lambda one: -(one.detectable or 0.0))[:_MOST_CASES]:
        lines += [
            (
                f"{row.case}: a slow-down of {share(row.detectable)} or more is found "
                f"(19 runs of 20); {_own_gate(row)}"
            ),
            (
                f"  rounds to see 5 %: {rounds(row.rounds_5, row)}, "
                f"2 %: {rounds(row.rounds_2, row)}, 1 %: {rounds(row.rounds_1, row)} "
                f"(noise of one round: {share(row.spread)})"
            ),
        ]
    blind = [
        row
        for row in calibration.seen
        if row.gate == "fail" and row.sees_threshold is False and row.metric != MAIN_METRIC
    ]
    blind.sort(key=lambda one: -(one.detectable or 0.0))
    lines += [
        f"{row.case} {row.metric}: only +{share(row.detectable)} would be seen; its gate of "
        f"{share(row.threshold)} is blind here"
        for row in blind[:_MOST_BLIND]
        if row.detectable is not None
    ]
    return tuple(lines)


def _own_gate(row: Seen) -> str:
    if row.gate != "fail":
        return "it gates nothing"
    blind = ", which is blind here" if row.sees_threshold is False else ""
    return f"its gate is {share(row.threshold)}{blind}"


def session_text(calibration: Calibration) -> str:
    """Return which session the promises are for."""
    session = calibration.session
    return (
        f"{session.rounds} to {session.max_rounds} rounds in "
        f"{format_duration(session.budget_s)}, {counted(session.comparisons, 'comparison')}"
    )


def main_rows(calibration: Calibration) -> tuple[Seen, ...]:
    """Return the rows of median latency."""
    return tuple(row for row in calibration.seen if row.metric == MAIN_METRIC)


def other_rows(calibration: Calibration) -> tuple[Seen, ...]:
    """Return the rows of the other gating metrics."""
    return tuple(
        row for row in calibration.seen if row.metric != MAIN_METRIC and row.metric not in _TAILS
    )


def tail_rows(calibration: Calibration) -> tuple[Seen, ...]:
    """Return the rows of P95 and P99."""
    return tuple(row for row in calibration.seen if row.metric in _TAILS)


def share(value: float | None) -> str:
    """Return a share with two digits: a spread isn't known better."""
    return format_share(None if value is None else float(f"{value:.2g}"))


def rounds(count: int | None, row: Seen) -> str:
    """Return the rounds that a change needs."""
    if not row.spread:
        return "–"
    return "–" if count is None else str(count) if count < 1000 else "over 999"


def modes_text(row: Seen) -> str:
    """Return both modes with the share of workers in each, or nothing."""
    if row.modes is None:
        return ""
    low, high = (format_value(value, row.unit) for value in (row.modes.low, row.modes.high))
    upper = row.modes.share_high
    return (
        f"{row.case} {row.metric} has two modes: {low} in {share(1.0 - upper)} of workers, "
        f"{high} ({format_change(row.modes.high / row.modes.low)}) in {share(upper)}"
    )


def alarms_text(calibration: Calibration) -> str:
    """Return the false alarms seen and expected."""
    found = calibration.false_alarms
    text = (
        f"{counted(found.alarms, 'false alarm')} in {counted(found.comparisons, 'comparison')} "
        f"of identical sides; chance alone gives one in {share(found.expected)} of reports. "
        f"p below 0.05: {found.below_5_percent}, expected {0.05 * found.comparisons:.1f}"
    )
    odd = found.below_5_percent and found.chance < 0.01
    return text + (f" (chance {share(found.chance)}: more than chance)." if odd else ".")


def setting_text(trial: SettingTrial) -> str:
    """Return what switching one setting off did."""
    if trial.helped == "left_out":
        return f"left out: {trial.reason}"
    low, high = (f"{value:.2g}" if value else "–" for value in (trial.lo, trial.hi))
    ratio = "–" if trial.ratio is None else f"{trial.ratio:.2g}"
    return f"spread without it × {ratio} ({low} to {high}): {_HELPED[trial.helped]}"


def promise_text(calibration: Calibration) -> str:
    """Return whether the promise was kept."""
    promise = calibration.promise
    if promise.status == "not_checked":
        return f"not tested: {promise.reason}"
    said = "kept" if promise.status == "kept" else "NOT KEPT"
    return (
        f"{said}: promised {share(promise.promised)}, injected {share(promise.injected)} into "
        f"{promise.metric}, found in {promise.found} of {counted(promise.counted, 'case')}"
        + (f" ({promise.reason})" if promise.reason else "")
    )


def spent_text(calibration: Calibration) -> str:
    """Return how long it took, and for what."""
    spent = calibration.spent
    return (
        f"{spent.rounds} rounds in {format_duration(spent.wall_s)} "
        f"of {format_duration(spent.budget_s)}: "
        f"identical sides {format_duration(spent.same_s)}, "
        f"settings {format_duration(spent.settings_s)}, "
        f"promise {format_duration(spent.promise_s)}"
    )


def metric_ranges(rows: Sequence[Seen]) -> tuple[tuple[str, str, str, str], ...]:
    """Return for each metric: its name, the spreads, what is seen, and the threshold."""
    by_metric: dict[str, list[Seen]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    return tuple(
        (
            metric,
            _range([row.spread for row in mine]),
            _range([row.detectable for row in mine]),
            _range([row.threshold for row in mine]),
        )
        for metric, mine in by_metric.items()
    )


def blind_text(calibration: Calibration) -> str:
    """Return which thresholds this machine can't see with the present configuration."""
    gating = [row for row in calibration.seen if row.gate == "fail"]
    by_metric: dict[str, list[Seen]] = {}
    for row in gating:
        if row.sees_threshold is False:
            by_metric.setdefault(row.metric, []).append(row)
    if by_metric:
        return "Below what can be seen: " + "; ".join(
            f"{metric}'s threshold in {counted(len(rows), 'case')} "
            f"({_some([row.case for row in rows])}), where "
            f"{_range([row.detectable for row in rows])} is seen"
            for metric, rows in by_metric.items()
        )
    if not any(row.sees_threshold for row in gating):
        return "Whether any threshold can be seen is not known: too little was measured."
    unknown = sum(row.sees_threshold is None for row in gating)
    return "Every threshold whose spread is known can be seen" + (
        f"; of {unknown} it isn't known." if unknown else "."
    )


def _some(cases: Sequence[str]) -> str:
    return ", ".join(cases[:3]) + (f" and {len(cases) - 3} more" if len(cases) > 3 else "")


def suggestion_text(one: Suggestion) -> str:
    """Return what stands there now, and the reason."""
    value = one.before
    before = "" if value is None else f"now {value if isinstance(value, int) else share(value)}; "
    return f"{before}{one.reason}"


def _range(values: Sequence[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "–"
    low, high = share(known[0]), share(known[-1])
    return low if low == high else f"{low.removesuffix(' %')} … {high}"
