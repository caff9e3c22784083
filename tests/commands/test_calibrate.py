"""What makes a calibration untrusted, and the rounds of a session whose budget is short."""

from __future__ import annotations

from perfci.commands.calibrate import session_rounds, untrusted_reasons
from perfci.config.keys import MeasureSettings
from perfci.measure.progress import CaseState, SessionResult
from tests.report.calibrations import seen
from tests.verdict.workers import case

SOUND = (seen("a"),)


def _result(ended: str = "done") -> SessionResult:
    return SessionResult((), wall_s=1.0, measured_s=1.0, rounds=9, ended=ended, notes=())


def _state(wall_s: float) -> CaseState:
    return CaseState(case(), "slug", {}, rounds=10, wall_s=wall_s)


def test_a_sound_calibration_is_trusted() -> None:
    assert list(untrusted_reasons(_result(), SOUND)) == []
    assert list(untrusted_reasons(_result("budget"), SOUND)) == []


def test_an_early_end_an_unknown_spread_and_an_alarm_are_not() -> None:
    assert len(list(untrusted_reasons(_result("interrupted"), SOUND))) == 1
    (unknown,) = untrusted_reasons(_result(), (seen("a", detectable=None),))
    assert "--budget" in unknown
    (reason,) = untrusted_reasons(_result(), (seen("a", false_alarm=True),))
    assert reason.endswith("a latency_p50")


def test_a_budget_that_cannot_reach_the_most_rounds_counts_the_rounds_it_allows() -> None:
    states = [_state(30.0), _state(20.0)]  # 5 s for a round of both
    most = [
        session_rounds(states, MeasureSettings(rounds=5, max_rounds=20, budget=budget)).most
        for budget in (1000.0, 60.0, 1.0)
    ]
    assert most == [20, 12, 5]
    assert session_rounds((), MeasureSettings(rounds=5, max_rounds=20)).most == 20
