"""Reports with what the page draws: pairs, quantiles of calls, reasons."""

from __future__ import annotations

from dataclasses import replace

from perfci.finding import Explanation
from perfci.model.report import Comparison, Report
from tests.report.examples import DECODER, EAGER, TUNED, rich_report, row
from tests.report.hostile import NAMES

PAIRS = ((1.20, 1.28), (1.22, 1.31), (1.24, 1.32), (1.21, 1.30), (1.25, 1.32), (1.23, 1.31))
FIRST = ((310.0, 41.0, 1.9, *(1.24,) * 12), (480.0, 60.0, 22.0, 4.1, *(1.31,) * 11))
"""Each side's first calls: head takes one more until it is warm."""
SLOW = (1.22, 1.9)
"""A round far from the others."""
QUANTILES = (1.1, 1.15, 1.17, 1.2, 1.23, 1.27, 1.4, 1.6, 2.2)


def with_pairs(one: Comparison, *, places: int = 6) -> Comparison:
    """Return a row of milliseconds with its rounds, the third of which is far from the others."""
    pairs = [*PAIRS[:2], SLOW, *PAIRS[2:]][: places + 1]
    base, head = ([side * 1e-3 for side in sides] for sides in zip(*pairs, strict=True))
    of_calls = one.metric == "latency_p50"
    quantiles = tuple(one * 1e-3 for one in QUANTILES) if of_calls else ()
    first = [tuple(one * 1e-3 for one in of) if of_calls else () for of in FIRST]
    return replace(
        one,
        base=replace(one.base, values=tuple(base), quantiles=quantiles, first_calls=first[0]),
        head=replace(one.head, values=tuple(head), quantiles=quantiles, first_calls=first[1]),
    )


def drawn_report(**changed: object) -> Report:
    """Return the rich report, of two commits, with pairs on its first row."""
    report = rich_report()
    first, *others = report.results
    report = replace(
        report,
        head=replace(report.head, dirty=False),
        results=(with_pairs(first), *others),
        explanations=(*report.explanations, Explanation(DECODER, "cold_start", "phase", "slower")),
    )
    return replace(report, **changed)


def large_report(count: int) -> Report:
    """Return a report of so many rows, each with seven pairs; every fiftieth regressed."""
    cases = (f"{EAGER[:-1]},layer={number}]" for number in range(count))
    rows = [
        with_pairs(row(case, "latency_p50", 1.2e-3, 1.2e-3 if number % 50 else 1.3e-3, status))
        for number, case in enumerate(cases)
        for status in ("unchanged" if number % 50 else "regressed",)
    ]
    return drawn_report(results=tuple(rows), failures=(), explanations=())


def hostile_page_report() -> Report:
    """Return a report in which every name is one that would like to be more than text."""
    names = [name or "x" for name in NAMES]
    results = tuple(
        replace(with_pairs(row(name, "latency_p50", 1e-3, 1.2e-3, "regressed")), disturbance=name)
        for name in names
    )
    return drawn_report(
        results=results,
        failures=(),
        notes=tuple(names),
        explanations=tuple(Explanation(one, "latency_p50", "k", one, one, 3) for one in names),
        skipped={name: name for name in names},
    )


__all__ = ["DECODER", "EAGER", "TUNED"]
