"""A calibration to render, with something of everything."""

from __future__ import annotations

from perfci.calibrate import Calibration, SeenMetric, SessionRounds
from perfci.model.case import Failure
from perfci.model.run import Environment, Side

ENCODER = "encoder[batch=1]"


def seen(case: str, metric: str = "latency_p50", **more: object) -> SeenMetric:
    given = {
        "threshold": 0.05,
        "pairs": 12,
        "spread": 0.006,
        "detectable": 0.0134,
        **more,
    }
    return SeenMetric(case=case, metric=metric, **given)


def everything(case: str = ENCODER, text: str = "boom") -> Calibration:
    """Return a calibration with a false alarm, a blind gate and a failure."""
    return Calibration(
        perfci_version="0.1.0",
        created_at="2026-01-02T03:04:05+00:00",
        side=Side("HEAD", "1" * 40, "python"),
        environment=Environment("k", {"cpu": "AMD"}),
        session=SessionRounds(5, 20),
        comparisons=8,
        wall_s=148.0,
        rounds=96,
        seen=(
            seen(case),
            seen(case, "cold_start", threshold=0.1, detectable=0.2, blind=True, false_alarm=True),
            seen("tokenise", spread=None, detectable=None, pairs=1),
        ),
        disturbance="the core was busy, in 14 of 960 bursts",
        failures=(Failure(case, "head", "setup", "RuntimeError", text),),
        notes=(f"The session ended early: {text}.",),
        untrusted=(f"identical sides were called different: {case} cold_start",),
    )
