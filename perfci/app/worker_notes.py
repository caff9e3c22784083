"""Pure: what a report says of its workers: disturbed bursts, and their own warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perfci.model.finding import Finding, found
from perfci.model.words import words
from perfci.model.worker import WorkerOutput
from perfci.units import counted
from perfci.verdict.comparison.delays import delayed_more

_MOST_CASES = 3
_MOST_NOTES = 20
_LONGEST = 300
_PLACES = ("on head", "on both sides", "on base")
"""In this order: what head alone is warned of is new."""


def worker_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return what a report says of its workers in words: what disturbed them, and their warnings.

    Of what disturbed them it has ``burst_findings``, too.
    """
    of_bursts = (f"{words(one)}." for one in burst_findings(outputs))
    return (*of_bursts, *warning_notes(outputs))


def burst_findings(outputs: Sequence[WorkerOutput]) -> tuple[Finding, ...]:
    """Return what share of bursts was excluded, of how many workers most would have been.

    And the cases whose bursts were delayed more often on head than on base.
    """
    findings = []
    if excluded := sum(output.bursts_set_aside for output in outputs):
        bursts = sum(output.bursts_measured for output in outputs)
        reason = _commonest((output.disturbance, output.bursts_set_aside) for output in outputs)
        findings.append(found("bursts-excluded", excluded=excluded, bursts=bursts, reason=reason))
    if kept := [output for output in outputs if output.bursts_disturbed]:
        reason = _commonest((output.disturbance, output.bursts_disturbed) for output in kept)
        findings.append(found("bursts-disturbed", workers=len(kept), reason=reason))
    if cases := _delayed_cases(outputs):
        findings.append(found("delayed-more-cases", cases=_named(cases)))
    return tuple(findings)


def _delayed_cases(outputs: Sequence[WorkerOutput]) -> list[str]:
    """Return the cases whose bursts were delayed more often on head than on base."""
    cases: dict[str, dict[str, list[WorkerOutput]]] = {}
    for output in outputs:
        sides = cases.setdefault(output.case, {"base": [], "head": []})
        sides[output.side].append(output)
    return [case for case, sides in cases.items() if delayed_more(sides["base"], sides["head"])]


def _commonest(reasons: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for reason, count in reasons:
        counts[reason] += count
    return counts.most_common(1)[0][0]


def warning_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return each warning once, with its cases, and the side where two were measured.

    The benchmark shares the worker's process: a warning may be its own, of any length and number.
    """
    sides = {output.side for output in outputs}
    warned: dict[tuple[str, str], set[str]] = {}
    for output in outputs:
        for warning in output.warnings:
            warned.setdefault((warning[:_LONGEST], output.case), set()).add(output.side)
    cases_of: dict[tuple[int, str], list[str]] = {}
    for (warning, case), on in warned.items():
        place = 1 if len(on) > 1 else 0 if "head" in on else 2
        cases_of.setdefault((place, warning), []).append(case)
    ranked = sorted(cases_of.items(), key=lambda one: one[0][0])
    notes = [
        f"{_named(cases)}{f', {_PLACES[place]}' if len(sides) > 1 else ''}: {warning}."
        for (place, warning), cases in ranked[:_MOST_NOTES]
    ]
    if len(ranked) > _MOST_NOTES:
        notes.append(f"Workers gave {counted(len(ranked) - _MOST_NOTES, 'more warning')}.")
    return tuple(notes)


def _named(cases: Sequence[str]) -> str:
    more = len(cases) - _MOST_CASES
    return ", ".join(cases[:_MOST_CASES]) + (f" and {more} more" if more > 0 else "")
