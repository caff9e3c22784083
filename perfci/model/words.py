"""Findings in English. All sentences and kinds of findings are here; no code depends on sentences.

A wording is a template (``_Argument`` has its forms), or a function that takes the finding's
arguments by name. The function for a verdict's reason takes the reason itself as its first
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfci.finding import (
    DONE_ONCE,
    FOLLOWS,
    IN_WORDS,
    LOOKS_SLOWER,
    NOTHING_EXERCISED,
    Finding,
    Reason,
)
from perfci.model.status import traits
from perfci.model.worker import THROTTLED
from perfci.units import (
    counted,
    format_change,
    format_difference,
    format_interval,
    format_share,
    format_value,
)


def _rounds(count: int, setting: str) -> str:
    """Return a number of rounds as text, with the setting that raises it if not `--rounds`."""
    return f"{count} rounds" + ("" if setting == "rounds" else f" (`{setting}`)")


_DETECTED = "a change of {change:share} would have been detected"


class _Argument:
    """A finding's argument, formatted as a template asks.

    The form is ``share``, ``change``, ``amount`` (a share, or a value if the finding has a unit),
    ``rounds`` (with the setting that raises them), ``n WORD``, a unit (``s``, ``bytes`` or
    ``ratio``), or a form of Python's own.
    """

    def __init__(self, value: Any, arguments: Mapping[str, Any]) -> None:
        self._value, self._all = value, arguments

    def __format__(self, form: str) -> str:
        value, unit = self._value, self._all.get("unit", "")
        if form == "share" or (form == "amount" and not unit):
            return format_share(value)
        if form == "amount" or form in {"s", "bytes", "ratio"}:
            return format_value(value, unit if form == "amount" else form)
        if form == "change":
            return format_change(value)
        if form == "rounds":
            return _rounds(value, self._all["setting"])
        return counted(value, form[2:]) if form.startswith("n ") else format(value, form)


def _looks(moved: str) -> Callable[..., str]:
    """Return the wording for a change that looks ``moved`` but isn't sure, because of ``why``."""
    return lambda *, why, **of_why: f"looks {moved}: {words(Finding(why, of_why))}"


_MUCH = 0.05
"""Share of excluded bursts from which on intervals are noticeably wider."""
_ALONE = "end other programs, or measure on a machine where nothing else runs"
_QUIETER = {THROTTLED: "raise the processor quota, or measure without one"}


def _bursts_excluded(*, excluded: int, bursts: int, reason: str) -> str:
    how_many, advice = f"{excluded:,} bursts were excluded", ""
    if bursts:  # 0 where measurements were stored without the number of all bursts
        share = format_share(excluded / bursts)
        how_many = f"{share} of bursts were excluded ({excluded:,} of {bursts:,})"
        if excluded >= _MUCH * bursts:
            advice = f". Intervals are wider for it, so {_QUIETER.get(reason, _ALONE)}"
    return f"{how_many}, most often because of this: {reason}{advice}"


def widens(finding: Finding) -> bool:
    """Say whether a finding on bursts tells of so many that intervals are noticeably wider."""
    of = finding.arguments
    much = finding.code == "bursts-excluded" and float(of["excluded"]) >= _MUCH * float(
        of["bursts"]
    )
    return finding.code == "bursts-disturbed" or (much and bool(of["bursts"]))


def _failed(*, side: str, stage: str, kind: str, message: str = "") -> str:
    text = f": {message}" if message else ""
    return f"{side} failed in {stage} ({kind}){text}"


def _too_few(*, count: int, what: str, needed: int, setting: str) -> str:
    return (
        f"{counted(count, what)} {'is' if count == 1 else 'are'} too few for an interval or a "
        f"verdict; {_rounds(needed, setting)} are needed"
    )


def _tails(**ratios: float) -> str:
    changes = (f"{name.replace('p', 'P')} {format_change(ratio)}" for name, ratio in ratios.items())
    return ", ".join(changes)


def _two_speeds(
    *, apart: float, head_slow: int, base_slow: int, rounds: int, mean_lo: float, mean_hi: float
) -> str:
    return (
        f"processes run at two speeds, {format_share(apart - 1.0)} apart, and are compared within "
        f"each; of {rounds} rounds head alone was slow in {head_slow}, base alone in {base_slow}; "
        f"over both speeds the mean changed by {format_change(mean_lo)} to {format_change(mean_hi)}"
    )


def _nothing_exercised(*, names: str, more: int = 0) -> str:
    files = f"{names} and {more} more" if more else names
    return f"no case used the changed files ({files}): write a benchmark that does"


_Words = Mapping[str, str | Callable[..., str]]
_COARSE_REMARKS: _Words = {
    "one-session-of-spread": "one session in the baseline: variance between sessions is unknown",
    "below-floor": "values below {floor:g} count as {floor:g}",
    "no-ratio": "one side is zero or below, so no ratio exists",
    "no-ratio-of-mean": "base's mean is not above zero, so no ratio exists",
}
"""Remarks on numbers that are too coarse, which the way of measuring is to blame for."""
_OTHER_REMARKS: _Words = {
    "round-on-one-side": "excluded, as only one side has a value: round {which}",
    "arithmetic-means": "values of zero or below: arithmetic means compared, base's taken as exact",
    "servers-differ": (
        "the rounds of the second fork server differ from those of the first, as identical code "
        "may, too"
    ),
    "delayed-more": (
        "head's workers were kept off their core in {head:,} of {bursts:,} bursts, base's in "
        "{base:,} (p = {p:.2g}): P95, P99 and mean include these bursts"
    ),
    "busy-threads": (
        "head's calls leave work to threads that run on after them, {head:share} of the other "
        "side's time (base's {base:share}): no latency includes it"
    ),
    "threads-differ": (
        "torch's number of threads is {head:g} on head and {base:g} on base: imports or set-up "
        "changed it"
    ),
    "two-speeds": _two_speeds,
    "does-nothing": (
        "a call takes {seconds:s}, about as long as one that does nothing: does the benchmark "
        "return its work as a function?"
    ),
    DONE_ONCE: (
        "a warm call takes {warm:s} and an early one {early:s}, so the work is done once per "
        "process: an iterator is used up, say, or a result is kept. Make the benchmark do it in "
        "each call, or if it only initialises, in its set-up"
    ),
    "of-bases-reference": "estimated from base's float64 reference, because of head: {why}",
    "accept-from-fork": (
        "`accept` entries from a fork are ignored unless the default branch has them, too"
    ),
    "accept-unbounded": (
        "an `accept` entry that base has already, without `up_to` or `until`, doesn't accept a new "
        "regression"
    ),
    "accept-expired": "it was accepted until {until}",
    "accept-exceeded": "it is accepted up to {up_to:amount} only",
}
OF_WORKERS: _Words = {
    "slow-rank": "rank {rank} is slower by {slower:s} a step, outside of collectives",
    "rank-most": "rank {rank} has the most",
    "exposed-communication": (
        "of {waited:s} a step in collectives, {exposed:s} don't overlap with computing"
    ),
    "rank-differs": lambda *, rank, other, apart=None: (
        f"rank {rank} returns something else than rank {other}"
        + ("" if apart is None else f", {apart:.2g} eps apart")
    ),
    "collective-counts": lambda **counts: (
        "of a step: " + ", ".join(f"{count:g} {kind}" for kind, count in counts.items())
    ),
    "collective-bytes": lambda **sizes: ", ".join(
        f"{kind} {format_value(size, 'bytes')}" for kind, size in sizes.items()
    ),
    "output-nan": (
        "`{where}` has NaN, as does its reference: work on NaN may take another time than work "
        "on numbers"
    ),
}
"""Remarks that a worker may make on a metric. The parent refuses other codes."""
_JUDGED_REMARKS: _Words = {
    "may-be-overstated": (
        "the interval begins at {least:amount}, below the threshold of {threshold:amount}: changes "
        "so close to it are overstated on average"
    ),
    FOLLOWS: "changed as {metric} did, and is shown in its row",
    "tails": _tails,
}
_JUDGED_METHOD: _Words = {
    "too-few": _too_few,
    "measure-together": (
        f"{_DETECTED}; `perfci compare` measures both sides in pairs and detects smaller changes"
    ),
}
_OTHER_JUDGED: _Words = {
    "looks-regressed": _looks("regressed"),
    "looks-improved": _looks("improved"),
    "looks-unchanged": _looks("unchanged"),
    "below-threshold": "significant, but below the threshold of {threshold:amount}",
    "at-threshold": (
        "significant, but at the threshold of {threshold:amount}: more rounds would hardly tell"
    ),
    "small-effect": "significant, but Cohen's d is below {least:g}",
    "no-evidence": "not enough evidence either way",
    "detectable": _DETECTED,
    "out-of-reach": f"{_DETECTED}; {{threshold:share}} is out of reach with this variance",
    "near-threshold": (
        f"{_DETECTED}; the change is too close to the threshold of {{threshold:amount}} to decide"
    ),
    "more-rounds": f"{_DETECTED}; about {{rounds:rounds}} would detect {{threshold:share}}",
    "no-regression": (
        "a regression of {threshold:amount} is excluded; no rounds were spent on whether it is "
        "better or unchanged"
    ),
}
_OTHER_METHOD: _Words = {
    "few-rounds": ("{rounds} rounds cannot rule out between-process variance; {needed:rounds} can"),
    "few-workers": (
        "{base} and {head} workers cannot rule out between-process variance; {needed:rounds} can"
    ),
    "no-pairs": "no pairs: no test is possible",
    "one-pair": "only one pair: a test needs at least 2",
    "no-values-on-one-side": "values of one side are missing: no test is possible",
    "one-value-on-one-side": "one side has a single value: a test needs at least 2",
    "one-session": "a baseline of one session says nothing about the variance between sessions",
    "only-pairs": "head was measured alone",
    "nothing-measured": "nothing was measured",
    "no-round": "no round was completed",
    "budget-ended": "the time budget was too short",
    "interrupted": "interrupted before the first round was complete",
    "session-ended": "the session ended before the first round was complete",
    "same-values": "both sides have the same value in every round: nothing to test",
    "no-spread": "the values do not vary: no test is possible",
    "no-spread-on-one-side": "the values of one side do not vary: no test is possible",
    "not-finite": "a value is not a finite number: no test is possible",
    "out-of-range": ("a value is above {largest:g}, or below its inverse: no test is possible"),
    "base-only": "only base has a value: {why}",
    "partly-lost": "{lacking} of {workers} workers of head have no value: {why}",
    "no-value": "{metric} is missing on base: {why}",
    "no-graph": "torch.compile produced no graph on {side}: all of it runs in eager mode",
    "left-out": "head's benchmark no longer reports it: its `metrics=` omits it",
    "unreported": "the default branch has this benchmark, and the report does not",
    "not-reported": "every case has {metric}, and the report lacks it",
    "absent": "{side} does not have it",
    "no-baseline": "no baseline yet: run `perfci baseline update`",
    "other-environment": "the baseline is from another environment: {environment}",
    "source-changed": (
        "the benchmark's source changed: run `perfci baseline update` to measure it again"
    ),
}
REMARKS: _Words = {**_COARSE_REMARKS, **_OTHER_REMARKS, **OF_WORKERS, **_JUDGED_REMARKS}
"""Remarks on a row's numbers. A remark is never the reason for the row's status."""
METHOD: _Words = {**_COARSE_REMARKS, **_JUDGED_METHOD, **_OTHER_METHOD}
"""Reasons for an undecided row for which the way of measuring is to blame."""
JUDGED: _Words = {**_JUDGED_REMARKS, **_JUDGED_METHOD, **_OTHER_JUDGED}
"""Findings that depend on the family: the rows over which p-values are corrected. A row that is
judged in another family (a whole report instead of a shard) loses them and gets new ones."""
WORDS: _Words = {
    **REMARKS,
    **METHOD,
    **JUDGED,
    IN_WORDS: "{text}",
    "bursts-excluded": _bursts_excluded,
    "bursts-disturbed": (
        "Most bursts of {workers:n worker} were disturbed but kept, most often because of this: "
        "{reason}. Their numbers are those of a busy or throttled machine: " + _ALONE
    ),
    "delayed-more-cases": (
        "More bursts were kept off their core on head than on base, beyond chance, in {cases}: "
        "their P95, P99 and mean include these bursts"
    ),
    "more-are-slow": (
        "more of head's processes may be slow: over both speeds its mean may be worse by "
        "{worst:share}, beyond the threshold of {threshold:share}"
    ),
    "throttled": (
        "a processor quota stopped most bursts of {throttled} of {workers} workers: raise it, or "
        "give the container whole cores"
    ),
    "few-rounds-changed": "most rounds do not show the change",
    "few-workers-changed": "most workers do not show the change",
    "round-groups": (
        "rounds fall into two groups, {low:change} and {high:change} ({low_count} and {high_count} "
        "of them): processes may run at two speeds"
    ),
    "worker-groups": (
        "workers fall into two groups, a ratio of {ratio:ratio} apart ({low_count} and "
        "{high_count} of them): processes may run at two speeds"
    ),
    "compiles-slower": "{pairs:n pair}; those of one commit differ by 5 to 18 %",
    "same-code": "both sides compiled the same graphs to the same code",
    "coarser-output": "`{where}` is {head}, was {base}",
    "more-in-eager": "more of {side} runs in eager mode: it has more graph breaks",
    "less-in-graphs": "head calls less, or compiles less of its calls",
    NOTHING_EXERCISED: _nothing_exercised,
    "harmless": "only prose and tests changed",
    "moved-in-one-round": "it had one round, in which it moved by more than the threshold here",
    "untouched": "it ran no changed file, and didn't move by its threshold in one round",
    "failed": _failed,
    "accept-unneeded": lambda *, case, metric, status: (
        f"`accept` names {case} {metric}, which "
        + (
            f"did not regress ({status}): the entry can go once this is merged"
            if traits(status).settled
            else f"was not decided ({status.replace('_', ' ')}): the entry may still be needed"
        )
    ),
    "accept-unknown": lambda *, case, metric, near="": (
        f"`accept` names {case} {metric}, which was not compared"
        + (f"; did you mean `{near}`?" if near else "")
    ),
    "server-python": "the sides run different Pythons",
    "server-plugins": "the sides have different {what} installed",
    "server-unknown": "the imports of {side} are not known",
    "server-failed": "a library cannot be imported by itself: {message}",
    "server-module": "{side} has another `{module}`",
    "server-environment": "{side} sets the variable {variable} as it is imported",
    "server-state": "{message}",
    "server-unfit": "{message}",
}
"""The wording of each code: a template, or a function of the finding's arguments."""


def words(finding: Finding) -> str:
    """Return ``finding`` in English.

    KeyError, TypeError or ValueError for a code or arguments that perfci never gives.
    """
    wording, arguments = WORDS[finding.code], finding.arguments
    if not isinstance(wording, str):
        return wording(**arguments)
    return filled(wording, arguments)


def filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Return a template with its arguments in the forms that it asks for."""
    return template.format(**{name: _Argument(arguments[name], arguments) for name in arguments})


def sayable(finding: Finding) -> bool:
    """Say whether ``words`` can put an untrusted finding into English."""
    try:
        words(finding)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return False
    return True


def _regressed(
    reason: Reason,
    *,
    threshold: float,
    ratio: float | None = None,
    difference: float | None = None,
    before: float | None = None,
    after: float | None = None,
    unit: str = "",
) -> str:
    limit = format_share(threshold)
    if difference is not None:
        change = format_difference(difference, unit)
        limit = format_value(threshold, unit)
    elif ratio is not None:
        change = format_change(ratio)
    else:
        change = f"{format_value(before, unit)} → {format_value(after, unit)}"
    return f"{reason.case}: {reason.metric} {change} (threshold {limit})"


def _warned(reason: Reason, **arguments: Any) -> str:
    return f"warning: {_regressed(reason, **arguments)}"


def _warned_undecided(reason: Reason, **arguments: Any) -> str:
    return f"{_warned(reason, **arguments)}, though undecided{_because(reason)}"


def _accepted(reason: Reason, *, by: str, because: str, **arguments: Any) -> str:
    return f"accepted{f' by {by}' if by else ''}: {_regressed(reason, **arguments)}: {because}"


def _undecided(
    reason: Reason,
    *,
    ratio: float | None = None,
    lo: float | None = None,
    hi: float | None = None,
) -> str:
    seen = ""
    if ratio is not None:
        seen = f"{format_change(ratio)} ({format_interval(lo, hi, like=ratio)}), "
    return f"{reason.case}: {reason.metric} {seen}inconclusive{_because(reason)}"


def _cases_not_measured(reason: Reason, *, cases: int, names: str) -> str:
    verb = "was" if cases == 1 else "were"
    return f"{counted(cases, 'case')} {verb} not measured{_because(reason)}: {names}"


def _incomplete(_: Reason, *, missing: str, lacking: int, shards: int) -> str:
    word, verb = ("shard", "is") if lacking == 1 else ("shards", "are")
    return f"incomplete: {word} {missing} of {shards} {verb} missing"


def _because(reason: Reason) -> str:
    return f" ({words(reason.because)})" if reason.because else ""


WARNINGS: _Words = {
    "accepted": _accepted,
    "warned": _warned,
    "warned-uncounted": "warning: {case}: {metric} cannot be counted{because}",
    "warned-undecided": _warned_undecided,
    "lost-metric": "warning: {case}: {metric}{because}",
    NOTHING_EXERCISED: lambda _, **arguments: _nothing_exercised(**arguments),
}
"""Reasons that don't fail the report."""
REASONS: _Words = {
    **WARNINGS,
    IN_WORDS: "{text}",
    "regressed": _regressed,
    "uncounted": "{case}: {metric} cannot be counted{because}",
    "rare-state": lambda _, *, rounds, share: (
        f"strict: {rounds} equal rounds don't exclude a state that slows less than "
        f"{format_share(share)} of head's processes; more `rounds` do"
    ),
    "no-number": "{case}: {metric}{because}",
    "failed": "{case}: {why}",
    "failed-on-both-sides": "{case}: fails on both sides: {why}",
    "failed-on-base": "{case}: fails on base only, although base has it: {why}",
    LOOKS_SLOWER: _undecided,
    "undecided": _undecided,
    "not-comparable": "{case}: not comparable{because}",
    "not-measured": _cases_not_measured,
    DONE_ONCE: "{case}: {why}",
    "nothing-measured": "nothing was measured",
    "nothing-to-compare-with": "nothing to compare with: {new} new",
    "nothing-gates": 'nothing gates: no compared metric has gate = "fail"',
    "interrupted": "interrupted before everything was measured",
    "unconfirmed": "unconfirmed: base and head were not measured in pairs",
    "incomplete": _incomplete,
    "elsewhere": "the report says {status}, by the configuration it was measured with",
}
"""The wording of a verdict's reason by its code. A template may also use the reason's ``case``,
``metric``, ``why`` (its underlying finding in words) and ``because`` (that text in brackets)."""


def reason_words(reason: Reason) -> str:
    """Return ``reason`` in English.

    KeyError, TypeError or ValueError for a code or arguments that perfci never gives.
    """
    wording = REASONS[reason.code]
    if not isinstance(wording, str):
        return wording(reason, **reason.arguments)
    return wording.format(
        case=reason.case,
        metric=reason.metric,
        why=words(reason.because) if reason.because else "",
        because=_because(reason),
        **reason.arguments,
    )
