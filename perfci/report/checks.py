"""Pure: what no measurement gives. A report that says it was edited or cut, not measured.

``docs/security.md`` promises that such a report is refused. Judging its rows again by their numbers
would not do: the numbers that a judgement starts from could be edited alone, and the rest of the
row, which then contradicts them, would be computed from the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from perfci.instruments import words as difference_words
from perfci.metrics import METRICS
from perfci.model.finding import MOST_STACK_S, Difference, Finding, Hint, Reason
from perfci.model.report import Comparison, Report
from perfci.model.words import reason_words, words
from perfci.report.limits import LONGEST_NAME
from perfci.report.outline import gates
from perfci.report.row_checks import row_contradictions
from perfci.stats.t_tests import CONFIDENCE
from perfci.verdict.decision import failed_on_base, new_cases, was_answered
from perfci.verdict.shards import parse_shard

_SLACK = 1e-9
"""An interval's ends are computed apart from its middle: they may differ by rounding."""
_DIRECTIONS = ("lower", "higher")
_LEAST_DF = 1.0
"""One pair more than one has it. Welch's test has at least those of its smaller side."""
_LONGEST = 1e9
"""More s than any session takes, and more rounds: 31 years. Merging adds them up."""

NamedNumber = tuple[str, float | None]
_Coded = TypeVar("_Coded", Finding, Reason, Difference, Hint)


def contradiction(report: Report) -> str:
    """Return the first thing in ``report`` that can't be, with its row, or nothing."""
    return next(_contradictions(report), "")


def _contradictions(report: Report) -> Iterator[str]:
    yield from _of_the_date(report.created_at)
    yield from _of_the_times(report)
    yield from _of_the_findings(report)
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(report.results):
        where = f"results[{number}] ({row.case} {row.metric})"
        before = first.setdefault((row.case, row.metric), number)
        if before != number:
            yield f"{where} stands there twice, first as results[{before}]"
        caveat = (row.caveat,) if row.caveat else ()
        if unknown := _unknown_code(words, (*row.findings, *caveat)):
            yield f"{where}: {unknown}"
        for reason in tuple(_of_a_row(row)) or row_contradictions(row):
            yield f"{where}: {reason}"
    yield from _of_what_ran(report)
    yield from _of_the_failed(report)
    yield from _of_what_is_missing(report)
    yield from _of_the_method(report)
    yield from _of_the_shards(report)
    yield from _of_the_verdict(report)
    yield from _of_the_cases(report)


def _of_the_date(text: str) -> Iterator[str]:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        yield f"created_at is {text!r}, no ISO 8601 date"


def _of_the_times(report: Report) -> Iterator[str]:
    timing = report.timing
    spent = (
        ("timing.wall_s", timing.wall_s),
        ("timing.measured_s", timing.measured_s),
        ("timing.rounds", timing.rounds),
        *((f"durations.{case}", seconds) for case, seconds in report.durations.items()),
    )
    yield from _below_zero("", *spent)
    yield from _below_zero("injected", *report.injected.items())
    for name, value in spent:
        if value > _LONGEST:
            yield f"{name} is {value:g}, more than any session has"


def _of_the_findings(report: Report) -> Iterator[str]:
    """Yield findings that perfci doesn't make, and lines and stacks that no code has."""
    if unknown := _unknown_code(reason_words, report.verdict.findings):
        yield f"verdict: {unknown}"
    if unknown := _unknown_code(words, report.findings):
        yield f"findings: {unknown}"
    for why in report.why:
        unknown = _unknown_code(difference_words, why.differences)
        if unknown := unknown or _unknown_code(difference_words, why.hints):
            yield f"why: {unknown}"
    for why in report.why:
        where = f"why of {why.case}"
        yield from _below_zero(where, *(("line", each.line) for each in why.differences))
        yield from _below_zero(where, *(("line", hint.line) for hint in why.hints))
        for stack in why.stacks:
            yield from _below_zero(where, ("stacks", stack.base), ("stacks", stack.head))
            if stack.base + stack.head > MOST_STACK_S:
                yield f"{where}: a stack takes longer than {MOST_STACK_S:g} s"
    for number, explanation in enumerate(report.explanations):
        yield from _below_zero(f"explanations[{number}]", ("line", explanation.line))
    for number, definition in enumerate(report.definitions):
        yield from _below_zero(f"definitions[{number}]", ("line", definition.line))


def _unknown_code(say: Callable[[_Coded], str], findings: Iterable[_Coded]) -> str:
    """Return which of untrusted ``findings`` can't be put into words, or nothing."""
    for finding in findings:
        try:
            say(finding)
        except KeyError:
            return f"the finding {finding.code!r} isn't known, or lacks an argument"
        except (TypeError, ValueError, ArithmeticError):
            return f"the finding {finding.code!r} has other arguments"
    return ""


def _of_a_row(row: Comparison) -> Iterator[str]:
    for name, value in (("p", row.p), ("p_adjusted", row.p_adjusted), ("welch_p", row.welch_p)):
        if value is not None and not 0.0 <= value <= 1.0:
            yield f"{name} is {value:g}, and a probability is from 0 to 1"
    if not CONFIDENCE <= row.confidence < 1.0:
        yield f"confidence is {row.confidence:g}, and an interval has 0.95 or more"
    names = ("threshold", "detectable", "rounds_set_aside", "base_sessions")
    yield from _below_zero("", *((name, getattr(row, name)) for name in names))
    if row.df is not None and row.df < _LEAST_DF - _SLACK:
        yield f"df is {row.df:g}, and no test has fewer than {_LEAST_DF:g}"
    if row.ratio is not None and row.ratio < 0.0 and not _has_negative(row):
        yield f"ratio is {row.ratio:g}, and no side is below zero"
    if row.direction not in _DIRECTIONS:
        yield f"direction is {row.direction!r}, not one of {', '.join(_DIRECTIONS)}"
    for name in ("ratio", "difference"):
        ends = (f"{name}_lo", name, f"{name}_hi")
        yield from _disordered(*((end, getattr(row, end)) for end in ends))
    for name, side in (("base", row.base), ("head", row.head)):
        if side is not None:
            counts = (("workers", side.workers), ("samples", side.samples))
            first = min(side.first_calls, default=None)
            yield from _below_zero(name, *counts, ("first_calls", first))
            interval = ((f"{name}.lo", side.lo), (f"{name}.center", side.center))
            yield from _disordered(*interval, (f"{name}.hi", side.hi))


def _has_negative(row: Comparison) -> bool:
    """Say whether a side is below zero, as a benchmark's own metric may be, and so its ratio."""
    return any(side is not None and (side.center or 0.0) < 0.0 for side in (row.base, row.head))


def _below_zero(where: str, *numbers: NamedNumber) -> Iterator[str]:
    prefix = f"{where}." if where else ""
    for name, value in numbers:
        if value is not None and value < 0:
            yield f"{prefix}{name} is {value:g}, below zero"


def _disordered(*numbers: NamedNumber) -> Iterator[str]:
    known = [(name, value) for name, value in numbers if value is not None]
    for (name, value), (other, bound) in pairwise(known):
        if value - bound > _SLACK * max(abs(value), abs(bound)):
            yield f"{name} is {value:g}, above {other}, which is {bound:g}"


def _of_what_ran(report: Report) -> Iterator[str]:
    if report.same_code and (report.ran is None or report.ran.base is None):
        yield "same_code names cases, and what base ran isn't known"
    known = {row.case for row in report.results}
    for row in report.results:
        if row.method == "same_code" and row.case not in report.same_code:
            yield f"{row.case} {row.metric} was not tested, and its code is not the same"
    sides = (report.ran.base, report.ran.head) if report.ran else ()
    for case in report.same_code:
        if case not in known:
            yield f"same_code names {case!r}, which has no row"
            return
        hashes = [side.cases.get(case) for side in sides if side]
        if None in hashes or len(set(hashes)) > 1:
            yield f"same_code names {case!r}, of which the sides ran different code"


def _of_the_failed(report: Report) -> Iterator[str]:
    """Yield each ``failed`` row whose case has no failure that it could be made of."""
    failed = {failure.case for failure in report.failures}
    for row in report.results:
        if row.status == "failed" and row.case not in failed:
            yield f"{row.case} is `failed`, and no failure is of it"


def _of_what_is_missing(report: Report) -> Iterator[str]:
    """Yield numbers of what isn't measured, and what is new in a case that was compared.

    A benchmark's own metrics aren't known here, and no metric is expected of every case.
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
    """A check measures head alone, and both sides in pairs only to confirm."""
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
    row = next((row for row in report.results if row.status == "regressed" and gates(row)), None)
    status = report.verdict.status
    if row is not None and status != "fail":
        yield f"the verdict is `{status}`, and {row.case} {row.metric} regressed"
    if row is None and status == "fail":
        yield "the verdict is `fail`, and no row that gates regressed"
    if status == "pass":
        yield from _of_a_pass(report)


def _of_a_pass(report: Report) -> Iterator[str]:
    """A failure is an error, or undecided. It passes only where base does not have the case."""
    absent = new_cases(report.results) & failed_on_base(report.failures).keys()
    broken = next((failure for failure in report.failures if failure.case not in absent), None)
    if broken is not None:
        yield f"the verdict is `pass`, and {broken.case} failed on {broken.side}"
    without_cases = report.shard and not report.results
    if not any(map(was_answered, report.results)) and not without_cases:
        yield "the verdict is `pass`, and nothing was measured"


def _of_the_cases(report: Report) -> Iterator[str]:
    """A case that was compared has a row, or has failed.

    The name of a benchmark that was cut isn't the beginning of its cases' names any more.
    """
    if report.is_one_sided:
        return
    shown = {row.case for row in report.results} | {failure.case for failure in report.failures}
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
