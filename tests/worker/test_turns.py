"""Two workers that hand the turn to each other: real processes, and the parent only looks on."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.worker.driver import Bench, Driver

pytestmark = pytest.mark.processes

SOURCE = """\
import os
import sys
import time
import perfci

@perfci.benchmark(side=["A", "B"])
def case(side):
    written = os.open("order", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    calls = iter(range(1, 1000))
    def call():
        number = next(calls)
        os.write(written, side.encode())
        if os.environ.get(side) == f"hangs at {number}":
            time.sleep(600)
    return call
"""
BEFORE = "AB"
"""The first calls."""


class Pair:
    """Both sides' workers, ready for blocks."""

    def __init__(self, bench: Bench, stack: ExitStack, **environment: str) -> None:
        path = bench.write(SOURCE)
        self.written = bench.root / "order"
        self.workers: list[Driver] = []
        for side, end in zip("AB", socket.socketpair(), strict=True):
            order = bench.order(path, f"case[side={side}]", warmup_s=0.0)
            started = bench.start(order, turns=end.fileno(), **environment)
            end.close()
            self.workers.append(stack.enter_context(started))
            self.workers[-1].wait_for("ready")
        assert self.written.read_text() == BEFORE

    def order(self, block: int, first: int, bursts: int = 3, calls: int = 1) -> None:
        for place, worker in enumerate(self.workers):
            turn = {"block": block, "first": place == first}
            order = {
                "lead_ins": [0] * bursts,
                "calls": calls,
                "collector": "perfci",
                "turn": turn,
            }
            worker.send({"do": "block", **order})

    def answers(self) -> list[dict[str, Any]]:
        return [worker.wait_for("block") for worker in self.workers]

    def called(self) -> str:
        return self.written.read_text().removeprefix(BEFORE)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_sides_alternate_burst_by_burst_and_who_begins_is_ordered(
    bench: Bench, stack: ExitStack
) -> None:
    pair = Pair(bench, stack)
    pair.order(0, first=0, calls=2)
    assert [one["bursts"] for one in pair.answers()] == [3, 3]
    assert pair.called() == "AABB" * 3
    pair.order(1, first=1)
    pair.answers()
    assert pair.called() == "AABB" * 3 + "BA" * 3


def test_the_death_of_one_side_ends_the_others_wait(bench: Bench, stack: ExitStack) -> None:
    pair = Pair(bench, stack, B="hangs at 3")
    pair.order(0, first=0)
    while pair.called() != "ABAB":
        pass
    pair.workers[1].process.send_signal(signal.SIGKILL)
    assert pair.workers[0].wait_for("block")["bursts"] == 2
    assert bench.block(pair.workers[0], bursts=2)["bursts"] == 2


def test_the_parent_ends_a_wait_and_what_is_left_of_it_says_nothing_later(
    bench: Bench, stack: ExitStack
) -> None:
    pair = Pair(bench, stack)
    first, second = pair.workers
    alone = {"lead_ins": [0] * 3, "calls": 1, "collector": "perfci"}
    first.send({"do": "block", **alone, "turn": {"block": 0, "first": True}})
    first.send({"do": "stop"})
    assert first.wait_for("block")["bursts"] == 1  # and handed the turn over, to nobody
    second.send({"do": "block", **alone, "turn": {"block": 1, "first": False}})
    second.send({"do": "stop"})
    assert second.wait_for("block")["bursts"] == 0
    pair.order(2, first=1)
    assert [one["bursts"] for one in pair.answers()] == [3, 3]
    assert pair.called() == "A" + "BA" * 3


def test_a_worker_that_waits_leaves_when_its_parent_is_gone(bench: Bench, stack: ExitStack) -> None:
    pair = Pair(bench, stack)
    turn = {"block": 0, "first": False}
    order = {"lead_ins": [0] * 3, "calls": 1, "collector": "perfci", "turn": turn}
    pair.workers[1].send({"do": "block", **order})
    pair.workers[1].hang_up()
    assert [message["say"] for message in iter(pair.workers[1].next, None)] == ["block"]
    assert pair.workers[1].process.wait(30) == 0
