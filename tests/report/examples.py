"""Reports to render: one with something of everything, and small ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from perfci.finding import IN_WORDS, Difference, Explanation, Reason, Why, finding, stated
from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.report import Comparison, Estimate, Report, Timing, Verdict
from perfci.model.run import Environment, Side
from perfci.model.words import words
from perfci.report.exporters import FORMATS, TERMINAL, exporter
from perfci.report.terminal import render_terminal
from perfci.stats.t_tests import t_quantile, two_sided_p
from perfci.verdict.decision import failed_finding
from perfci.verdict.policy import standard_error

EAGER = "encoder[batch=1,mode=eager]"
TUNED = "encoder[batch=16,mode=max-autotune]"
DECODER = "decoder[length=128]"
TOKENS = "tokenise"
BROKEN = "generate[beams=4]"
BURSTS = finding("bursts-excluded", excluded=31, bursts=6240, reason="core taken")

FACTS = {
    "cpu": "AMD EPYC 9654",
    "device_name": "cpu",
    "machine": "x86_64",
    "python": "3.11.9",
    "quiet_pin": "true",
    "system": "linux",
    "threads": "4",
    "torch": "2.13.0+cpu",
}


def row(
    case: str, metric: str, before: float, after: float, status: str, **changed: Any
) -> Comparison:
    """Return a comparison whose interval is one per cent to either side of its ratio."""
    known = METRICS[metric]
    ratio = None if known.absolute else after / before
    exact = known.kind == "exact"
    low, high = (ratio or 1.0) * 0.99, (ratio or 1.0) * 1.01
    if ratio and ratio > 0.0 and not exact:
        middle = math.sqrt(low * high)
        low, high = low * ratio / middle, high * ratio / middle
    t = _t_of(ratio, low, high) if ratio and ratio > 0.0 else math.copysign(0.9, after - before)
    p = two_sided_p(t, 5.0)
    fields: dict[str, Any] = {
        "case": case,
        "metric": metric,
        "unit": known.unit,
        "status": status,
        "gate": known.gate,
        "method": "exact" if exact else "paired_t",
        "base": estimate(before, exact=exact),
        "head": estimate(after, exact=exact),
        "ratio": ratio,
        "ratio_lo": ratio and (ratio if exact else low),
        "ratio_hi": ratio and (ratio if exact else high),
        "threshold": known.threshold,
        "p": None if exact else p,
        "p_adjusted": None if exact else min(1.0, 8 * p),
        "df": None if exact else 5.0,
        "cohens_d": None if exact else t / math.sqrt(6),
        "detectable": None if exact else 0.012,
        "difference": after - before if known.absolute else None,
        "difference_lo": after - before if known.absolute else None,
        "difference_hi": after - before if known.absolute else None,
        "direction": known.direction,
    }
    made = Comparison(**{**fields, **changed})
    return replace(made, se=standard_error(made))


def _t_of(ratio: float, low: float, high: float) -> float:
    """Return Student's t of six pairs whose interval this is."""
    half = math.log(high / low) / 2
    return math.log(ratio) / half * t_quantile(0.975, 5.0)


def estimate(center: float, *, exact: bool = False) -> Estimate:
    """Return six workers' estimate."""
    spread = 0.0 if exact else 0.01
    return Estimate(center, center * (1 - spread), center * (1 + spread), 6, 1800)


def bare(case: str, status: str, reason: str) -> Comparison:
    """Return a row that stands for a whole case."""
    return row(
        case,
        "latency_p50",
        1.0,
        1.0,
        status,
        base=None,
        head=None,
        method="none",
        ratio=None,
        ratio_lo=None,
        ratio_hi=None,
        p=None,
        p_adjusted=None,
        df=None,
        cohens_d=None,
        detectable=None,
        findings=(finding(IN_WORDS, text=reason),),
    )


def rich_report(**changed: Any) -> Report:
    """Return a report that has something of everything."""
    failure = Failure(
        BROKEN,
        "head",
        "setup",
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (1x128 and 64x32)",
        'Traceback (most recent call last):\n  File "lib.py", line 3\nRuntimeError: shapes\n',
    )
    results = (
        row(EAGER, "latency_p50", 1.232e-3, 1.312e-3, "regressed", confirmed=True),
        row(EAGER, "device_time_p50", 1.4e-3, 1.57e-3, "regressed"),
        row(EAGER, "latency_sd", 1.25e-3, 1.33e-3, "regressed"),
        row(EAGER, "throughput", 800, 751.9, "regressed"),
        row(EAGER, "cold_start", 2.1, 2.12, "unchanged"),
        row(EAGER, "peak_host_memory", 412 << 20, 413 << 20, "unchanged"),
        row(TUNED, "latency_p50", 0.62e-3, 0.621e-3, "unchanged"),
        row(TUNED, "compile_time", 12.3, 14.9, "inconclusive", findings=(
            finding("more-rounds", change=0.14, rounds=11, threshold=0.1, setting="rounds"),
        )),
        row(TUNED, "graph_breaks", 0, 1, "regressed"),
        row(TUNED, "peak_device_memory", 900 << 20, 700 << 20, "improved"),
        row(DECODER, "latency_p50", 4.4e-3, 4.41e-3, "unchanged"),
        row(DECODER, "cold_start", 1.9, 2.13, "inconclusive"),
        row(TOKENS, "latency_p50", 31e-6, 26e-6, "improved"),
        bare(BROKEN, "failed", f"head failed in setup (RuntimeError): {failure.message}"),
        bare("beam_search", "new", "no baseline yet: `perfci baseline update`"),
        bare("bench_old.py", "removed", "head hasn't got it"),
        bare("sampler", "not_comparable", "the benchmark's source changed"),
    )  # fmt: skip
    fields: dict[str, Any] = {
        "perfci_version": "0.1.0",
        "created_at": "2026-03-04T05:06:07+00:00",
        "command": "compare",
        "base": Side("main", "a" * 40, "/usr/bin/python3.11"),
        "head": Side("feature", "b" * 40, "/usr/bin/python3.11", dirty=True),
        "environment": Environment("linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d", FACTS),
        "verdict": Verdict(
            "fail",
            (
                Reason(
                    "regressed",
                    TUNED,
                    "graph_breaks",
                    {"difference": 1.0, "unit": "count", "threshold": 0.0},
                ),
                Reason("regressed", EAGER, "latency_p50", {"ratio": 1.065, "threshold": 0.05}),
                Reason("failed", BROKEN, because=failed_finding(failure)),
                Reason(
                    "not-comparable",
                    "sampler",
                    because=finding(IN_WORDS, text="the benchmark's source changed"),
                ),
                Reason("warned", EAGER, "device_time_p50", {"ratio": 1.1214, "threshold": 0.05}),
            ),
        ),
        "timing": Timing(192.4, 117.0, 42),
        "results": results,
        "failures": (failure,),
        "explanations": (
            Explanation(
                TUNED, "graph_breaks", "graph_break", "call to print()", "lib/encoder.py", 41
            ),
            Explanation(EAGER, "cold_start", "slow_import", "import yaml: 0 ns → 12.1 ms"),
        ),
        "findings": (BURSTS,),
        "notes": (f"{words(BURSTS)}.",),
        "skipped": {"encoder[batch=64,mode=eager]": "needs 16 GiB"},
        "not_measured": {"device_time_p50": "no CUDA device"},
    }
    return Report(**{**fields, **changed})


def passing_report() -> Report:
    """Return a report in which nothing moved."""
    return rich_report(
        verdict=Verdict("pass", ()),
        results=(
            row(EAGER, "latency_p50", 1.232e-3, 1.230e-3, "unchanged"),
            row(DECODER, "latency_p50", 4.4e-3, 4.41e-3, "unchanged"),
        ),
        failures=(),
        explanations=(),
        notes=(),
        findings=(),
        skipped={},
    )


def alone_report() -> Report:
    """Return what ``perfci run`` gives: one side's numbers."""
    numbers = (
        (EAGER, "latency_p50", 1.3e-3),
        (EAGER, "cold_start", 2.1),
        (TOKENS, "latency_p50", 3e-5),
    )
    return rich_report(
        command="run",
        base=None,
        verdict=Verdict("inconclusive", (stated("nothing to compare with: 3 new"),)),
        results=tuple(
            row(case, metric, value, value, "new", base=None, method="none", ratio=None,
                ratio_lo=None, ratio_hi=None, p=None, p_adjusted=None, cohens_d=None,
                detectable=None, df=None)
            for case, metric, value in numbers
        ),
        failures=(),
        explanations=(),
        notes=(),
        findings=(),
    )  # fmt: skip


def why_of(case: str) -> Why:
    """Return a why in which every string of a stranger's is ``case``."""
    counts = {"before": 1.0, "after": 13.0, "seconds": 3.41e-4, "others": 0, "total": 3.41e-4}
    copies = Difference(
        "operators",
        "operator-calls",
        {"operator": case, **counts},
        seconds=3.41e-4,
        metric="latency",
        file=case,
        line=3,
        hunk=True,
    )
    slower = {"operator": case, "calls": 2.0, "before": 1e-4, "after": 2e-4}
    return Why(
        case,
        (copies, Difference("operators", "operator-time", slower, seconds=1e-4)),
        untold={case: case},
    )


def hostile_report(name: str) -> Report:
    """Return a report in which every string of a stranger's is ``name``."""
    named = (finding(IN_WORDS, text=name),)
    failure = Failure(name, "head", "setup", name, name, f"log {name}\n{name}")
    return rich_report(
        head=Side(name, "b" * 40, name),
        base=Side(name, "a" * 40, name),
        environment=Environment(name, {name: name}),
        base_environment=Environment(name, {name: f"{name}!"}),
        verdict=Verdict("fail", (stated(name), stated(f"{name} again"))),
        results=(
            replace(
                row(
                    name,
                    "latency_p50",
                    1.0,
                    1.2,
                    "regressed",
                    findings=named,
                ),
                metric=name,
                unit=name,
            ),
            replace(
                row(name, "throughput", 100.0, 50.0, "regressed"),
                metric=f"{name} 2",
                unit=name,
                gate="warn",
            ),
            replace(
                row(name, "memory_growth", 0.0, 64.0, "regressed"), metric=f"{name} 3", unit=name
            ),
            row(
                name,
                "cold_start",
                1.0,
                1.2,
                "inconclusive",
                findings=named,
            ),
            row(name, "import_time", 1.0, 1.0, "unchanged", findings=named),
            bare(name, "failed", name),
            replace(bare(name, "new", name), metric=f"{name} 4"),
            replace(bare(name, "removed", name), metric="latency_p99"),
            replace(bare(name, "not_comparable", name), metric="latency_mean"),
        ),
        failures=(failure,) * 4,
        explanations=(Explanation(name, name, name, name, name, 4),),
        why=(why_of(name),),
        notes=(name,),
        findings=(),
        skipped={name: name},
        not_measured={name: name},
        injected={name: 0.5},
    )


FORMS = (TERMINAL, *FORMATS)


def rendered(report: Report, form: str) -> str:
    """Return a report in one of ``FORMS``."""
    if form == TERMINAL:
        return render_terminal(report, width=100, color=False)
    return exporter(form).render(report)
