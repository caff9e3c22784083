"""Reports whose cases have modes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

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
