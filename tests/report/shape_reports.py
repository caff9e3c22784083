"""Reports of a benchmark of several shapes: what each takes, and which compile anew."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.finding import Finding, found
from perfci.model.report import Comparison, Report, Verdict
from tests.report.examples import passing_report, row
from tests.report.mode_reports import alone

CASE = "encoder[mode=default]"
GUARD = "tensor 'x' size mismatch at index 0. expected 8, actual 32"
SPARED = found("spare-dynamic", shapes="32x128")


def shape_rows(
    *, slower: float = 1.0, compiled: int = 2, suggestion: Finding | None = SPARED
) -> list[Comparison]:
    """Return rows of four shapes; ``compiled`` of them compile on head, and two on base."""
    rows = []
    sizes = (128, 1, 32, 8)  # as rows come: sorted by their names
    for size in sizes:
        label, before = f"{size}x128", 1e-5 * size
        after = before * (slower if size == 32 else 1.0)
        status = "regressed" if after > 1.05 * before else "unchanged"
        timed = row(CASE, "latency_p50", before, after, status, gate="info")
        rows.append(replace(timed, metric=f"latency_{label}"))
    for size in sizes:
        now, then = (float(sizes_before(size) < many) for many in (compiled, 2))
        status = "regressed" if now > then else "improved" if now < then else "unchanged"
        guard = (found("guard-failed", guard=GUARD),) if now and size > 1 else ()
        rows.append(counted_row(f"compiles_{size}x128", then, now, status, guard))
    rate, base = (4 - compiled) / 4, 2 / 4
    status = "regressed" if rate < base else "improved" if rate > base else "unchanged"
    said = (suggestion,) if suggestion else ()
    return [*rows, counted_row("shape_hit_rate", base, rate, status, said)]


def sizes_before(size: int) -> int:
    """Return how many sizes are smaller: those compile first."""
    return (1, 8, 32, 128).index(size)


def counted_row(
    metric: str, before: float, after: float, status: str, findings: tuple[Finding, ...]
) -> Comparison:
    """Return an exact row of an amount."""
    rate = {"unit": "ratio", "gate": "info", "direction": "higher"}
    changed = rate if metric == "shape_hit_rate" else {"gate": "warn"}
    counted = row(CASE, "recompiles", before, after, status, findings=findings, **changed)
    return replace(counted, metric=metric)


def shape_run() -> Report:
    """Return a run of head alone."""
    amount = dict.fromkeys(("difference", "difference_lo", "difference_hi"))
    rows = [replace(one, base=None, status="new", method="none", **amount) for one in shape_rows()]
    return alone(tuple(rows))


def shape_comparison(*, slower: float = 1.0, compiled: int = 2) -> Report:
    """Return a comparison in which 32x128 is ``slower``, or other shapes compile."""
    rows = shape_rows(slower=slower, compiled=compiled)
    return replace(passing_report(), results=tuple(rows), verdict=Verdict("pass", ()))
