"""How long a session measures depends on how many comparisons its report will have."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfci.config.keys import MeasureSettings
from perfci.measure import progress as state_module
from perfci.measure import session as session_module
from perfci.measure.checkout.trees import Differences, Overlay
from perfci.measure.executor import Executor
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.progress import Journal
from perfci.measure.session import Session, SessionOptions
from perfci.model.worker import Discovery
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from tests.verdict.workers import case, worker

OWN = (0.001, -0.002, 0.002, 0.0, -0.001, 0.001, -0.001, 0.0, 0.002, -0.002, 0.001, -0.001)


@pytest.fixture
def rounds_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return how many rounds a slow-down of 10 % takes a session that has ``scale``."""

    def measured(_: object, tasks: object, number: int, *__: object) -> list[SimpleNamespace]:
        head = 0.011 * (1.0 + OWN[number - 1])
        sides = (("base", 0.01), ("head", head))
        results = (worker(name, number, {"latency_p50": value}) for name, value in sides)
        return [
            SimpleNamespace(
                side=output.side,
                result=output,
                failure=None,
                crowding=None,
                log="",
                used=None,
                measured_s=0.0,
            )
            for output in results
        ]

    def count(scale: float = 1.0, cases: int = 1) -> int:
        sides = [
            SimpleNamespace(
                name=name,
                root=tmp_path,
                python="",
                tree="",
                overlay=Overlay(""),
                discovery=Discovery((), (), {}),
            )
            for name in ("base", "head")
        ]
        plan = SimpleNamespace(
            sides=sides,
            head=sides[-1],
            differences=Differences(),
            config=SimpleNamespace(
                policy=Policy(),
                pattern="bench_*.py",
                settings=MeasureSettings(rounds=5, max_rounds=12),
                quiet=SimpleNamespace(fork=False, threads=True),
            ),
            task=lambda *_: None,
            forget_cold_caches=lambda _: None,
        )
        monkeypatch.setattr(session_module, "measure_round", measured)
        workplace = SimpleNamespace(
            plan=plan,
            journal=Journal(tmp_path),
            executor=Executor(),
            budget_end=math.inf,
            gpu=GpuWatches(),
            shown=SimpleNamespace(progress=lambda _: None),
        )
        session = Session(workplace, SessionOptions(scale=scale))
        return session.measure(tuple(case(f"case{n}") for n in range(cases)), {}).rounds

    return count


def test_a_shards_session_counts_the_comparisons_of_all_shards(rounds_of) -> None:
    # m 4^-n ≤ α/4: 5 rounds for one comparison, 7 for twelve, 9 for two hundred
    assert [rounds_of(scale) for scale in (1.0, 12.0, 200.0)] == [5, 7, 9]


def test_a_scale_that_rounding_made_larger_costs_no_round(rounds_of) -> None:
    # ten comparisons take 6 rounds, eleven take 7
    assert [rounds_of(scale) for scale in (10.0 + 1e-12, 10.5)] == [6, 7]


def test_a_case_is_compared_once_a_round(rounds_of, monkeypatch) -> None:
    compared: list[tuple[str, int]] = []

    def counting(case, base, *rest, **more):
        compared.append((case.id, len(base)))
        return compare_case(case, base, *rest, **more)

    monkeypatch.setattr(state_module, "compare_case", counting)
    rounds_of(cases=3)
    assert compared
    assert len(compared) == len(set(compared))
