"""Whatever a benchmark does, its worker says what failed and where, or visibly dies."""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import signal
from collections.abc import Callable, Iterator

import pytest

from perfci.errors import Unusable
from perfci.worker.calls import require_ended, require_ran
from tests.worker.driver import Bench

TORCH = pytest.mark.torch
TOLD = [
    ("exits", "SystemExit", "setup", "benchmarks/bench_exits.py:7: "),
    ("exits_on_import", "SystemExit", "import", "benchmarks/bench_exits_on_import.py:4: 3"),
    ("raises_on_import", "KeyError", "import", "benchmarks/bench_raises_on_import.py:4: "),
    ("raises_in_setup", "FileNotFoundError", "setup", "bench_raises_in_setup.py:6: weights.pt"),
    ("raises_late", "StopIteration", "warmup", "benchmarks/bench_raises_late.py:7: "),
    ("raises_the_unprintable", "Unprintable", "setup", "unprintable.py:12: Unprintable, whose"),
    ("breaks_its_output", "ValueError", "setup", "bench_breaks_its_output.py:8: and now?"),
    ("returns_nothing", "nothing_returned", "setup", "benchmarks/bench_returns_nothing.py:4: "),
    ("returns_a_number", "not_callable", "setup", "benchmarks/bench_returns_a_number.py:4: "),
    (
        "is_async",
        "nothing_ran",
        "first_call",
        "returned a lazy `coroutine`, and nothing ran: ",
    ),
    (
        "is_a_generator",
        "nothing_ran",
        "first_call",
        "returned a lazy `generator`, and nothing ran: ",
    ),
    ("is_an_async_generator", "nothing_ran", "first_call", "a lazy `async_generator`, and"),
    pytest.param("another_device", "wrong_device", "first_call", "on meta", marks=TORCH),
    pytest.param(
        "asks_for_too_much",
        "RuntimeError",
        "first_call",
        "benchmarks/bench_asks_for_too_much.py:7: ",
        marks=TORCH,
    ),
]
DIES = [
    ("crashes", -signal.SIGSEGV),
    ("killed", -signal.SIGKILL),
    ("leaves_without_a_word", 0),
]
HEAD = "import perfci\n\n@perfci.benchmark\ndef case():\n"


@pytest.fixture
def bench(forked_bench: Bench) -> Bench:
    return forked_bench


@pytest.mark.parametrize(("name", "kind", "stage", "message"), TOLD)
def test_a_failure_is_told_with_its_kind_stage_and_place(
    request: pytest.FixtureRequest, name: str, kind: str, stage: str, message: str
) -> None:
    with_torch = request.node.get_closest_marker("torch")
    bench: Bench = request.getfixturevalue("torch_bench" if with_torch else "bench")
    failed = bench.failure(bench.misbehaving(name), "misbehaving")
    assert (failed["kind"], failed["stage"]) == (kind, stage), failed
    assert message in failed["message"]


@pytest.mark.parametrize(("name", "code"), DIES)
def test_a_worker_that_dies_in_setup_has_said_that_it_was_there(
    bench: Bench, name: str, code: int
) -> None:
    with bench.start(bench.order(bench.misbehaving(name), "misbehaving")) as worker:
        stages = [message["stage"] for message in iter(worker.next, None)]
        assert stages == ["import", "setup"]
        assert worker.process.wait(30) == code


class Awaited:
    def __await__(self) -> Iterator[None]:
        yield None


LAZY = {
    "map(abs, [1])": "map",
    "reversed([1])": "list_reverseiterator",
    "functools.partial(abs, 1)": "partial",
    "(lambda: 1)": "function",
    "Awaited()": "Awaited",
    "(1, itertools.starmap(abs, [[1]]))": "starmap",
    "{'a': (abs(n) for n in [1])}": "generator",
}


@pytest.mark.parametrize(("result", "kind"), LAZY.items())
def test_a_result_that_runs_only_later_is_refused(result: str, kind: str) -> None:
    lazy = eval(result, {"itertools": itertools, "functools": functools, "Awaited": Awaited})
    with pytest.raises(Unusable, match=f"a lazy `{kind}`, and nothing ran") as refused:
        require_ran(lazy)
    assert refused.value.kind == "nothing_ran"


@pytest.mark.parametrize("hold", [lambda future: future, lambda future: [future]])
def test_a_future_is_refused_until_its_work_has_ended(hold: Callable[[object], object]) -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    with pytest.raises(Unusable, match="a future before its work had ended") as refused:
        require_ended(hold(future))
    assert refused.value.kind == "nothing_ran"
    future.set_result(1)
    require_ended(hold(future))


FUTURE = """import concurrent.futures, time
import perfci

POOL = concurrent.futures.ThreadPoolExecutor(1)

@perfci.benchmark
def case():
    return lambda: POOL.submit(time.sleep, 0.2)
"""


def test_a_worker_refuses_a_future_whose_work_still_runs(bench: Bench) -> None:
    failed = bench.failure(FUTURE)
    assert (failed["kind"], failed["stage"]) == ("nothing_ran", "first_call")


def test_a_hundred_megabytes_of_output_do_not_disturb_the_messages(bench: Bench) -> None:
    path = bench.misbehaving("prints_without_end")
    with bench.start(bench.order(path, "misbehaving")) as worker:
        worker.wait_for("ready")
        assert bench.block(worker)["samples"] == 1


def test_a_case_that_is_not_in_its_file_is_told(bench: Bench) -> None:
    failed = bench.failure(HEAD + "    return lambda: 1\n", "another")
    assert failed["kind"] == "no_such_case"


FORKS = """\
    calls = iter(range(10**9))
    def work():
        if next(calls) == {number} and os.fork() == 0:
            time.sleep(0.05)  # the system runs the copy when it likes
    return work
"""


@pytest.mark.parametrize("number", [0, 1, 500])
def test_work_whose_copy_returns_from_a_fork_fails(bench: Bench, number: int) -> None:
    """In the first call, while it warms up, or in a burst; noticed at the end at the latest."""
    path = bench.write("import os, time\n" + HEAD + FORKS.format(number=number))
    with bench.start(bench.order(path, "case", warmup_s=0.0 if number > 1 else 0.2)) as worker:
        message = worker.next()
        while message and message["say"] != "failed":
            if message["say"] == "ready":
                order = {
                    "lead_ins": [0] * 1,
                    "calls": 2_000,
                    "collector": "perfci",
                    "turn": None,
                }
                worker.send({"do": "block", **order})
                worker.send({"do": "finish"})
            message = worker.next()
        assert message
        assert message["kind"] == "forked_copy"


def test_work_whose_children_end_by_themselves_is_measured(bench: Bench) -> None:
    body = (
        "    def work():\n        if os.fork() == 0:\n            os._exit(0)\n        os.wait()\n"
    )
    path = bench.write("import os\n" + HEAD + body + "    return work\n")
    with bench.start(bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        assert bench.block(worker, bursts=2, calls=3)["bursts"] == 2


@pytest.mark.parametrize("when", ["import", "call"])
def test_a_benchmark_that_replaces_clocks_is_measured_by_real_ones(bench: Bench, when: str) -> None:
    """A library's frozen clock, as tests have it, is its own."""
    replace = (
        "time.perf_counter_ns = time.monotonic_ns = lambda: 5; "
        "time.perf_counter = time.monotonic = time.time = lambda: 5.0\n"
    )
    top = replace if when == "import" else ""
    line = replace if when == "call" else "pass"
    body = f"    def work():\n        {line}\n        time.sleep(0.002)\n"
    path = bench.write("import time\n" + top + HEAD + body + "    return work\n")
    with bench.start(bench.order(path, "case")) as worker:
        assert worker.wait_for("ready")["call_s"] >= 0.002
        assert bench.block(worker, calls=5)["duration"] >= 0.01
