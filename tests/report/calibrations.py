"""Calibrations to render: one with something of everything."""

from __future__ import annotations

from perfci.calibrate import (
    Calibration,
    DefaultSession,
    FalseAlarms,
    Promise,
    PromiseCase,
    SeenMetric,
    SettingTrial,
    Suggestion,
    TimeSpent,
)
from perfci.model.case import Failure
from perfci.model.run import Environment, Side
from perfci.stats.spread import Modes

ENCODER = "encoder[batch=1]"
DECODER = "decoder[length=128]"


def seen(case: str, metric: str = "latency_p50", **more: object) -> SeenMetric:
    given = {
        "benchmark": case.partition("[")[0],
        "unit": "s",
        "gate": "fail",
        "threshold": 0.05,
        "pairs": 12,
        "spread": 0.006,
        "spread_hi": 0.011,
        "worker_spread": 0.03,
        "detectable": 0.0134,
        "promised": 0.0251,
        "rounds_1": 24,
        "rounds_2": 10,
        "rounds_5": 7,
        "sees_threshold": True,
        "p": 0.4,
        **more,
    }
    return SeenMetric(case=case, metric=metric, **given)


def everything(case: str = ENCODER, text: str = "boom") -> Calibration:
    """Return a calibration with two modes, a broken promise, a false alarm and suggestions."""
    return Calibration(
        perfci_version="0.1.0",
        created_at="2026-01-02T03:04:05+00:00",
        side=Side("HEAD", "1" * 40, "python"),
        environment=Environment("k", {"cpu": "AMD"}),
        session=DefaultSession(5, 20, 600.0, 0.01, 8),
        spent=TimeSpent(148.0, 150.0, 66.0, 51.0, 30.0, 96),
        seen=(
            seen(case),
            seen(
                DECODER,
                modes=Modes(0.00040, 0.00052, 0.25),
                detectable=None,
                promised=None,
                spread=0.2,
            ),
            seen(case, "cold_start", threshold=0.1, detectable=0.2, sees_threshold=False),
            seen(case, "latency_p95", gate="warn", detectable=0.04),
            seen("tokenise", spread=None, detectable=None, promised=None, pairs=1),
        ),
        false_alarms=FalseAlarms(8, 1, 0.01, 2, 0.05),
        settings=(
            SettingTrial("malloc", "helps", 2.4, 1.3, 4.4, (case,), 12),
            SettingTrial("pin", "unknown", 1.1, 0.6, 2.0, (case,), 12),
            SettingTrial("gc", "left_out", reason="no time for it; a larger --budget has"),
        ),
        promise=Promise(
            "not_kept",
            "latency_p50",
            0.0251,
            0.0251,
            0,
            1,
            (PromiseCase(case, 8, 8, counted=True, found=False, ratio=1.001),),
            reason=f"missed in {case}",
        ),
        suggestions=(
            Suggestion(("max_rounds",), 34, 20, f"{case} needs it"),
            Suggestion(("thresholds", "decoder", "latency_p50"), 0.08, None, "out of reach"),
            Suggestion(("thresholds", "own", "cold_start"), 0.2, 0.1, "its own", "its decorator"),
        ),
        configuration="pyproject.toml",
        failures=(Failure(case, "head", "setup", "RuntimeError", text),),
        notes=(f"Too few rounds to know the spread: {text}.",),
        untrusted=(f"the promise was not kept: missed in {case}",),
    )
