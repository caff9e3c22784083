"""Work that calls leave to threads: no latency has it, and a metric does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from perfci.model.measuring import WorkerOutput
from perfci.model.words import words
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import default_policy
from perfci.verdict.row_status import adjust
from perfci.worker.bursts import Bursts, Garbage, StrayCopies
from tests.verdict.workers import STEADY, case, worker

METRIC = "busy_after_calls"
_ENOUGH_S = 0.02


def cpu_of_others() -> float:
    return time.process_time() - time.thread_time()


class OtherSide:
    """Hands over the turn when ``until`` says so, and ``work_s`` of other threads are done."""

    def __init__(self, until: Callable[[], bool], work_s: float = -1.0) -> None:
        self._until = until
        self._work_s = work_s

    def come(self) -> bool:
        end = cpu_of_others() + self._work_s
        while not self._until() or cpu_of_others() < end:
            time.sleep(0.001)
        return True

    def hand_over(self) -> None:
        pass


@pytest.mark.slow  # it compares times that it measured
def test_threads_that_work_on_between_bursts_are_seen() -> None:
    stopped = threading.Event()

    def spin() -> None:
        while not stopped.is_set():
            pass

    bursts = Bursts(lambda: None, None, StrayCopies(), Garbage())
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        bursts.block(1, 1, 0, OtherSide(lambda: True, _ENOUGH_S))
    finally:
        stopped.set()
        thread.join()
    assert bursts.busy_share() > 0


@pytest.mark.parametrize(
    ("base", "head", "status"),
    [(None, 0.9, "regressed"), (0.9, None, "improved"), (0.5, 0.5, "unchanged")],
)
def test_work_that_moves_to_a_thread_warns(
    base: float | None, head: float | None, status: str
) -> None:
    def workers(side: str, share: float | None) -> tuple[WorkerOutput, ...]:
        return tuple(
            worker(side, number, {} if share is None else {METRIC: share * luck})
            for number, luck in enumerate(STEADY, start=1)
        )

    policy = default_policy()
    rows = compare_case(case(), workers("base", base), workers("head", head), policy, paired=True)
    (row,) = adjust(rows, policy)
    assert (row.metric, row.status, row.gate) == (METRIC, status, "warn")


@pytest.mark.parametrize(("base", "head", "is_said"), [(0.0, 0.9, True), (0.5, 0.5, False)])
def test_a_latency_that_has_not_all_of_the_work_says_so(
    base: float, head: float, is_said: bool
) -> None:
    sides = [
        tuple(
            worker(side, number, {"latency_p50": 1e-3 * luck, METRIC: share * luck})
            for number, luck in enumerate(STEADY, start=1)
        )
        for side, share in (("base", base), ("head", head))
    ]
    rows = compare_case(case(), sides[0], sides[1], default_policy(), paired=True)
    (latency,) = (row for row in rows if row.metric == "latency_p50")
    said = [words(one) for one in latency.findings]
    assert any("leave work to threads" in one for one in said) == is_said
