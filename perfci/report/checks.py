"""Pure: what no measurement gives. A report that says it was edited or cut, not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from perfci.instruments import words as difference_words
from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.finding import MOST_STACK_S, Difference, Finding, Hint, Reason
from perfci.model.report import Comparison, Estimate, Report, Verdict
from perfci.model.words import reason_words, words
from perfci.report.limits import LONGEST_NAME
from perfci.report.outline import gates
from perfci.report.row_checks import why_untrue
from perfci.stats.t_tests import CONFIDENCE
from perfci.verdict.decision import failed_on_base, new_cases, was_answered
from perfci.verdict.shards import parse_shard

# Pure: where a report contradicts itself: a verdict, a status or a shard that its rest denies.


def why_contradicted(report: Report) -> Iterator[str]:
    """Yield what can't be true together, gravest first."""
    yield from _of_the_failed(report)
    yield from _of_what_is_missing(report)
    yield from _of_the_method(report)
    yield from _of_the_shards(report)
    yield from _of_the_verdict(report)
    yield from _of_the_cases(report)


def _of_the_failed(report: Report) -> Iterator[str]:
    """A ``failed`` row is what ``failure_rows`` makes of its case's failures."""
    of: dict[str, list[Failure]] = {}
    for failure in report.failures:
        of.setdefault(failure.case, []).append(failure)
    for row in report.results:
        if row.status == "failed" and not of.get(row.case):
            yield f"{row.case} is `failed`, and no failure is of it"


def _of_what_is_missing(report: Report) -> Iterator[str]:
    """No worker gave what isn't measured; and what base hasn't got isn't compared.

    Own metrics aren't known here, and nothing is asked of every case.
    """
    compared = {row.case for row in report.results if row.base and row.head}
    for row in report.results:
        if row.metric not in METRICS:
            continue
        if row.metric in report.not_measured and row.head and row.head.workers:
            yield f"not_measured names {row.metric}, which {row.case} has numbers of"
        if row.status == "new" and row.case in compared:
            yield f"{row.case} {row.metric} is `new`, and others of that case were compared"


def _of_the_method(report: Report) -> Iterator[str]:
    """A check measures head alone, and both sides paired only what it confirms."""
    for row in report.results:
        if row.method == "paired_t" and report.command == "check" and not row.confirmed:
            yield f"{row.case} {row.metric} is of a check, and paired without being confirmed"
        if row.method == "welch_t" and row.confirmed:
            yield f"{row.case} {row.metric} is confirmed, and its sides were measured unpaired"


def _of_the_shards(report: Report) -> Iterator[str]:
    for name, text in (("shard", report.shard), *(("missing", shard) for shard in report.missing)):
        if not text:
            continue
        try:
            parse_shard(text)
        except ValueError:
            yield f"{name} is {text!r}, not like 2/4"
    if report.missing and report.shard:
        yield "it is a shard, and says that shards are missing: a merged report says that"
    if report.missing and report.verdict.status == "pass":
        yield "the verdict is `pass`, and shards are missing"


def _of_the_verdict(report: Report) -> Iterator[str]:
    """``fail`` means that a gating row regressed, and nothing else means it."""
    gating = [row for row in report.results if row.status == "regressed" and gates(row)]
    status = report.verdict.status
    if gating and status != "fail":
        row = gating[0]
        yield f"the verdict is `{status}`, and {row.case} {row.metric} regressed"
    if not gating and status == "fail":
        yield "the verdict is `fail`, and no row that gates regressed"
    if status == "pass":
        yield from _of_a_pass(report)


def _of_a_pass(report: Report) -> Iterator[str]:
    """What fails is an error, or undecided: never a pass, but where base does not have the case."""
    absent = new_cases(report.results) & failed_on_base(report.failures).keys()
    broken = next((failure for failure in report.failures if failure.case not in absent), None)
    if broken is not None:
        yield f"the verdict is `pass`, and {broken.case} failed on {broken.side}"
    without_cases = report.shard and not report.results
    if not any(map(was_answered, report.results)) and not without_cases:
        yield "the verdict is `pass`, and nothing was measured"


def _of_the_cases(report: Report) -> Iterator[str]:
    """What was measured beside another side has a row, or has failed.

    The name of a benchmark that was cut isn't that in its cases' names any more.
    """
    if report.is_one_sided:
        return
    shown = {row.case for row in report.results}
    shown |= {failure.case for failure in report.failures}
    ran = report.ran
    measured = {
        "durations": report.durations,
        "ran.base.cases": ran.base.cases if ran and ran.base else {},
        "ran.head.cases": ran.head.cases if ran else {},
    }
    for where, cases in measured.items():
        for case in cases:
            if case not in shown:
                yield f"{where} names {case!r}, which has no row and didn't fail"
    benchmarks = {case.partition("[")[0] for case in shown}
    for number, definition in enumerate(report.definitions):
        name = definition.benchmark
        if name not in benchmarks and len(name) < LONGEST_NAME:
            yield f"definitions[{number}] is of {name!r}, of which no case has a row or failed"


_SLACK = 1e-9
"""An interval's ends are computed separately from its middle: they may differ by rounding."""
_DIRECTIONS = ("lower", "higher")
_LEAST_DF = 1.0
"""Of one pair more than one; Welch's has at least those of its smaller side."""
_LONGEST = 1e9
"""More s than any session takes, and more rounds: 31 years. What is merged is added up."""

Named = tuple[str, float | None]


def why_impossible(report: Report) -> str:
    """Return the first thing in ``report`` that can't be, naming its row; empty where all can."""
    return next(_reasons(report), "")


def _reasons(report: Report) -> Iterator[str]:
    yield from _of_the_date(report.created_at)
    timing = report.timing
    yield from _below_zero(
        "timing",
        ("wall_s", timing.wall_s),
        ("measured_s", timing.measured_s),
        ("rounds", timing.rounds),
    )
    if unsayable := why_unsayable(report.verdict):
        yield f"verdict: {unsayable}"
    if unsayable := why_unsayable(report):
        yield f"findings: {unsayable}"
    yield from _below_zero("injected", *report.injected.items())
    yield from _below_zero("durations", *report.durations.items())
    yield from _above(
        ("timing.wall_s", timing.wall_s),
        ("timing.measured_s", timing.measured_s),
        ("timing.rounds", timing.rounds),
        *((f"durations.{case}", spent) for case, spent in report.durations.items()),
    )
    if unsayable := why_untellable(report):
        yield f"why: {unsayable}"
    for why in report.why:
        lines = (
            *(("line", difference.line) for difference in why.differences),
            *(("line", hint.line) for hint in why.hints),
        )
        times = (("stacks", time) for stack in why.stacks for time in (stack.base, stack.head))
        yield from _below_zero(f"why of {why.case}", *lines, *times)
        if any(stack.base + stack.head > MOST_STACK_S for stack in why.stacks):
            yield f"why of {why.case}: a stack takes longer than {MOST_STACK_S:g} s"
    for number, explanation in enumerate(report.explanations):
        yield from _below_zero(f"explanations[{number}]", ("line", explanation.line))
    for number, definition in enumerate(report.definitions):
        yield from _below_zero(f"definitions[{number}]", ("line", definition.line))
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(report.results):
        where = f"results[{number}] ({row.case} {row.metric})"
        before = first.setdefault((row.case, row.metric), number)
        if before != number:
            yield f"{where} stands there twice, first as results[{before}]"
        if unsayable := why_unsayable(row):
            yield f"{where}: {unsayable}"
        for reason in tuple(_of_a_row(row)) or why_untrue(row):
            yield f"{where}: {reason}"
    yield from _of_what_ran(report)
    yield from why_contradicted(report)


def _of_what_ran(report: Report) -> Iterator[str]:
    if report.same_code and (report.ran is None or report.ran.base is None):
        yield "same_code names cases, and what base ran isn't known"
    known = {row.case for row in report.results}
    for row in report.results:
        if row.method == "same_code" and row.case not in report.same_code:
            yield f"{row.case} {row.metric} was not tested, and its code is not the same"
    for case in report.same_code:
        if case not in known:
            yield f"same_code names {case!r}, which has no row"
            return
        ran = (
            [side.cases.get(case) for side in (report.ran.base, report.ran.head) if side]
            if report.ran
            else []
        )
        if None in ran or len(set(ran)) > 1:
            yield f"same_code names {case!r}, of which the sides ran different code"


def _of_the_date(text: str) -> Iterator[str]:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        yield f"created_at is {text!r}, no ISO 8601 date"


def _of_a_row(row: Comparison) -> Iterator[str]:
    shares = (("p", row.p), ("p_adjusted", row.p_adjusted), ("welch_p", row.welch_p))
    for name, value in shares:
        if value is not None and not 0.0 <= value <= 1.0:
            yield f"{name} is {value:g}, and a probability is from 0 to 1"
    if not CONFIDENCE <= row.confidence < 1.0:
        yield f"confidence is {row.confidence:g}, and an interval has 0.95 or more"
    yield from _below_zero(
        "",
        ("threshold", row.threshold),
        ("detectable", row.detectable),
        ("rounds_set_aside", row.rounds_set_aside),
        ("base_sessions", row.base_sessions),
    )
    if row.df is not None and row.df < _LEAST_DF - _SLACK:
        yield f"df is {row.df:g}, and no test has fewer than {_LEAST_DF:g}"
    if row.ratio is not None and row.ratio < 0.0 and not _has_negative(row.base, row.head):
        yield f"ratio is {row.ratio:g}, and no side is below zero"
    if row.direction not in _DIRECTIONS:
        yield f"direction is {row.direction!r}, not one of {', '.join(_DIRECTIONS)}"
    yield from _disordered(
        ("ratio_lo", row.ratio_lo), ("ratio", row.ratio), ("ratio_hi", row.ratio_hi)
    )
    yield from _disordered(
        ("difference_lo", row.difference_lo),
        ("difference", row.difference),
        ("difference_hi", row.difference_hi),
    )
    for name, side in (("base", row.base), ("head", row.head)):
        if side is not None:
            counts = (("workers", side.workers), ("samples", side.samples))
            first = min(side.first_calls, default=None)
            yield from _below_zero(f"{name}.", *counts, ("first_calls", first))
            ends = ((f"{name}.lo", side.lo), (f"{name}.center", side.center))
            yield from _disordered(*ends, (f"{name}.hi", side.hi))


def _has_negative(*sides: Estimate | None) -> bool:
    """A metric of the benchmark's own may be below zero, and with it the ratio of its means."""
    return any(side is not None and (side.center or 0.0) < 0.0 for side in sides)


def _below_zero(where: str, *numbers: Named) -> Iterator[str]:
    prefix = f"{where}." if where and not where.endswith(".") else where
    for name, value in numbers:
        if value is not None and value < 0:
            yield f"{prefix}{name} is {value:g}, below zero"


def _above(*numbers: Named) -> Iterator[str]:
    for name, value in numbers:
        if value is not None and value > _LONGEST:
            yield f"{name} is {value:g}, more than any session has"


def _disordered(*numbers: Named) -> Iterator[str]:
    known = [(name, value) for name, value in numbers if value is not None]
    for (name, value), (other, bound) in pairwise(known):
        if value - bound > _SLACK * max(abs(value), abs(bound)):
            yield f"{name} is {value:g}, above {other}, which is {bound:g}"


def why_unsayable(findings: Comparison | Verdict | Report) -> str:
    """Return what is wrong with the findings of an untrusted report, or nothing."""
    if isinstance(findings, Verdict):
        return _first(reason_words, findings.findings)
    caveat = (findings.caveat,) if isinstance(findings, Comparison) and findings.caveat else ()
    return _first(words, (*findings.findings, *caveat))


def why_untellable(report: Report) -> str:
    """Return what is wrong with the whys of an untrusted report, or nothing."""
    differences = (finding for why in report.why for finding in why.differences)
    return _first(difference_words, differences) or _first(
        difference_words, (finding for why in report.why for finding in why.hints)
    )


_Sayable = TypeVar("_Sayable", Finding, Reason, Difference, Hint)


def _first(say: Callable[[_Sayable], str], findings: Iterable[_Sayable]) -> str:
    for finding in findings:
        try:
            say(finding)
        except KeyError:
            return f"the finding {finding.code!r} isn't known, or lacks an argument"
        except (TypeError, ValueError, ArithmeticError):
            return f"the finding {finding.code!r} has other arguments"
    return ""
