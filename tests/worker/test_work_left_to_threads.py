"""Work that calls leave to threads: no latency has it, and a metric does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from perfci.model.measuring import WorkerOutput
from perfci.model.words import words
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
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
        bursts.block([0], 1, OtherSide(lambda: True, _ENOUGH_S))
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

    policy = Policy()
    rows = compare_case(case(), workers("base", base), workers("head", head), policy, paired=True)
    (row,) = adjust(rows, policy)
    assert (row.metric, row.status, row.gate) == (METRIC, status, "warn")


@pytest.mark.parametrize(
    ("metric", "base", "head", "said"),
    [
        (METRIC, 0.0, 0.9, "leave work to threads"),
        (METRIC, 0.5, 0.5, ""),
        ("torch_threads", 4.0, 1.0, "threads is 1 on head and 4 on base"),
        ("torch_threads", 1.0, 2.0, "threads is 2 on head and 1 on base"),
        ("torch_threads", 2.0, 2.0, ""),
    ],
)
def test_a_latency_to_which_threads_matter_says_so(
    metric: str, base: float, head: float, said: str
) -> None:
    sides = [
        tuple(
            worker(
                side,
                number,
                {"latency_p50": 1e-3 * luck, metric: share * luck if metric == METRIC else share},
            )
            for number, luck in enumerate(STEADY, start=1)
        )
        for side, share in (("base", base), ("head", head))
    ]
    rows = compare_case(case(), sides[0], sides[1], Policy(), paired=True)
    (latency,) = (row for row in rows if row.metric == "latency_p50")
    about = [text for one in latency.findings if "thread" in (text := words(one))]
    assert [said in text for text in about] == [True] * bool(said)
