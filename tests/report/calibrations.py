"""A calibration to render, with something of everything."""

from __future__ import annotations

from perfci.calibrate import Calibration, DefaultSession, Disturbance, SeenMetric
from perfci.model.case import Failure
from perfci.model.run import Environment, Side
from perfci.stats.spread import Modes

ENCODER = "encoder[batch=1]"
DECODER = "decoder[length=128]"


def seen(case: str, metric: str = "latency_p50", **more: object) -> SeenMetric:
    given = {
        "unit": "s",
        "gate": "fail",
        "threshold": 0.05,
        "pairs": 12,
        "spread": 0.006,
        "detectable": 0.0134,
        "sees_threshold": True,
        "p": 0.4,
        **more,
    }
    return SeenMetric(case=case, metric=metric, **given)


def everything(case: str = ENCODER, text: str = "boom") -> Calibration:
    """Return a calibration with two modes, a false alarm, a blind gate and a failure."""
    two = Modes(0.00040, 0.00052, 0.25)
    return Calibration(
        perfci_version="0.1.0",
        created_at="2026-01-02T03:04:05+00:00",
        side=Side("HEAD", "1" * 40, "python"),
        environment=Environment("k", {"cpu": "AMD"}),
        session=DefaultSession(5, 20, 600.0, 0.01, 8),
        wall_s=148.0,
        budget_s=150.0,
        rounds=96,
        seen=(
            seen(case),
            seen(DECODER, modes=two, detectable=None, sees_threshold=None, spread=0.2),
            seen(case, "cold_start", threshold=0.1, detectable=0.2, sees_threshold=False,
                 false_alarm=True),
            seen(case, "latency_p95", gate="warn", detectable=0.04),
            seen("tokenise", spread=None, detectable=None, sees_threshold=None, pairs=1),
        ),
        disturbance=Disturbance("the core was busy", 14, 960),
        failures=(Failure(case, "head", "setup", "RuntimeError", text),),
        notes=(f"The session ended early: {text}.",),
        untrusted=(f"identical sides were called different: {case} cold_start",),
    )  # fmt: skip
