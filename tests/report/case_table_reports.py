"""Reports whose cases have modes, or shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from perfci.model.finding import Finding, finding
from perfci.model.report import Comparison, Estimate, Report, Verdict
from perfci.stats.evidence import summarise
from tests.report.examples import alone_report, passing_report, row

SPREAD = (-1.2, -0.7, -0.1, 0.2, 0.6, 1.2)
"""Six processes, in units of their spread."""


def mode_rows(
    latencies: Mapping[str, float],
    *,
    base: Mapping[str, float] | None = None,
    benchmark: str = "encoder",
    axes: str = "batch=1,",
    spread: float = 0.01,
    workers: int = 6,
) -> list[Comparison]:
    """Return each mode's latency, peak and compile time; of head alone without ``base``."""
    rows = []
    for mode, latency in latencies.items():
        case = f"{benchmark}[{axes}mode={mode}]"
        before = base[mode] if base else latency
        status = "unchanged" if base else "new"
        faster = "improved" if latency < 0.95 * before else status
        one = row(case, "latency_p50", before, latency, faster)
        rows.append(
            replace(
                one,
                base=processes(before, spread, workers),
                head=processes(latency, spread, workers),
            )
        )
        rows.append(row(case, "peak_host_memory", 300 << 20, 300 << 20, status))
        if mode != "eager":
            rows.append(row(case, "compile_time", 12.0, 12.0, status))
            rows.append(row(case, "compile_time_cached", 1.5, 1.5, status))
    return [one if base else replace(one, base=None, method="none") for one in rows]


def processes(latency: float, spread: float, workers: int) -> Estimate:
    """Return so many processes whose logarithms spread by ``spread`` about ``latency``."""
    values = [float(f"{latency * math.exp(spread * z):.6g}") for z in SPREAD[:workers]]
    known = summarise(values)
    return Estimate(known.center, known.lo, known.hi, len(values), 1800, tuple(values))


HELPS = {"eager": 1.2e-3, "default": 0.61e-3, "reduce-overhead": 0.6e-3, "max-autotune": 0.59e-3}
USELESS = dict.fromkeys(HELPS, 1.2e-3)
CAUGHT_UP = {**HELPS, "eager": 0.6e-3}


def alone(rows: tuple[Comparison, ...]) -> Report:
    """Return a run of these rows."""
    bare = dict.fromkeys(
        ("ratio", "ratio_lo", "ratio_hi", "p", "p_adjusted", "cohens_d", "detectable", "df", "se")
    )
    return replace(alone_report(), results=tuple(replace(one, **bare) for one in rows))


def mode_comparison() -> Report:
    """Return a comparison in which the decoder's eager has caught up with its modes."""
    rows = (
        *mode_rows(HELPS, base=HELPS),
        *mode_rows(CAUGHT_UP, base=HELPS, benchmark="decoder", axes=""),
    )
    return replace(passing_report(), results=tuple(rows), verdict=Verdict("pass", ()))


CASE = "encoder[mode=default]"
GUARD = "tensor 'x' size mismatch at index 0. expected 8, actual 32"
SPARED = finding("spare-dynamic", shapes="32x128")


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
        guard = (finding("guard-failed", guard=GUARD),) if now and size > 1 else ()
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


def shape_comparison(*, slower: float = 1.0, compiled: int = 2) -> Report:
    """Return a comparison in which 32x128 is ``slower``, or other shapes compile."""
    rows = shape_rows(slower=slower, compiled=compiled)
    return replace(passing_report(), results=tuple(rows), verdict=Verdict("pass", ()))
