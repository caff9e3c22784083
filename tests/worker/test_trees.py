"""A worker that starts processes of its own: what they import, and what of theirs is measured."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perfci.config.keys import QuietTable
from perfci.measure.machine.isolation import child_environment
from tests.worker.driver import Bench

pytestmark = pytest.mark.processes

METHODS = ("fork", "spawn", "forkserver")
SPAWNED = METHODS[1:]
POOL = """
import multiprocessing
import perfci

class Doubler:
    def __call__(self, number):
        return 2 * number

def nested(number):
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        return pool.map(Doubler(), [number])[0]

@perfci.benchmark
def case():
    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(1, multiprocessing.get_context("{method}"))

    def work():
        assert executor.submit({ask}, 4).result() == 8
    return work
"""


@pytest.mark.parametrize("method", SPAWNED)
@pytest.mark.parametrize("ask", ["Doubler()", "nested"])
def test_a_spawned_process_imports_the_benchmark_file(bench: Bench, method: str, ask: str) -> None:
    assert bench.measure(POOL.format(method=method, ask=ask))["samples_ns"]


HOLDING = """
import multiprocessing
import os
import subprocess
import sys
import time
import perfci

MIB = 1 << 20
SIZE = 60 * MIB

def meet(barrier):
    global BARRIER
    BARRIER = barrier

def hold(_):
    held = bytearray(os.urandom(1)) * SIZE
    BARRIER.wait(60)  # on a busy machine one would else be done before the other begins
    time.sleep(0.1)
    return len(held)

def burn(seconds):
    ended = time.process_time() + seconds
    while time.process_time() < ended:
        pass

def pool(method, processes):
    context = multiprocessing.get_context(method)
    made = context.Pool(processes, meet, (context.Barrier(processes),))
    made.map(time.sleep, [0.05] * processes, chunksize=1)  # all of them have begun
    return made

@perfci.benchmark(method=["fork", "spawn", "forkserver"])
def memory(method):
    made = pool(method, 2)
    return lambda: made.map(hold, range(2), chunksize=1)

def hold_some(size):
    held = bytearray(os.urandom(1)) * (size << 20)
    BARRIER.wait(60)
    time.sleep(0.25)  # a busy machine looks at it late
    BARRIER.wait(60)
    return len(held)

@perfci.benchmark(method=["fork", "spawn", "forkserver"], least=[40, 100])
def uneven(method, least):
    made = pool(method, 2)
    sizes = [[100, least], [least, 100]]  # each child has the larger one in turn
    def work():
        sizes.reverse()
        return made.map(hold_some, sizes[0], chunksize=1)
    return work

@perfci.benchmark
def of_its_own():
    held = bytearray(b"1") * SIZE
    made = pool("fork", 2)
    return lambda: (held, made.map(time.sleep, [0.02] * 2, chunksize=1))

@perfci.benchmark(method=["fork", "spawn", "forkserver"])
def processor(method):
    made = pool(method, 1)
    return lambda: made.map(burn, [0.02])

@perfci.benchmark
def hidden():
    line = "import time; x = b'1' * (60 << 20); [0 for _ in range(300_000)]; time.sleep(0.2)"
    return lambda: subprocess.run([sys.executable, "-S", "-c", line], check=True)

@perfci.benchmark
def helped():
    import pathlib
    helper = pathlib.Path("torch/_inductor/compile_worker/__main__.py")
    helper.parent.mkdir(parents=True)
    helper.write_text("import time; x = b'1' * (60 << 20); print(flush=True); time.sleep(99)")
    process = subprocess.Popen([sys.executable, helper.absolute()], stdout=subprocess.PIPE)
    process.stdout.readline()
    return lambda: process.poll()

@perfci.benchmark
def alone():
    return lambda: len(b"1" * SIZE)
"""
MIB = 1 << 20
BRIEF: dict[str, Any] = {"growth": False, "warmup_s": 0.001}
OVER, PEAK, PROCESSOR = "host_memory_over_setup", "peak_host_memory", "children_cpu_time"


@pytest.mark.parametrize("method", METHODS)
def test_the_memory_of_a_case_is_that_of_its_tree(bench: Bench, method: str) -> None:
    values = bench.measure(HOLDING, f"memory[method={method}]", **BRIEF)["values"]
    assert values[OVER] == pytest.approx(120 * MIB, abs=15 * MIB)
    assert values[PEAK] > values[OVER]


@pytest.mark.parametrize("method", METHODS)
def test_more_memory_in_one_of_two_children_is_seen_whichever_it_is(
    tmp_path: Path, method: str
) -> None:
    quiet = child_environment({}, QuietTable(), 1, (), {})
    quiet = {name: value for name, value in quiet.items() if name.startswith("MALLOC_")}

    def measured(least: int) -> dict[str, float]:
        name = f"uneven[method={method},least={least}]"
        return Bench(tmp_path / str(least)).measure(HOLDING, name, env=quiet, **BRIEF)["values"]

    with ThreadPoolExecutor(2) as both:  # they mostly wait
        less, more = both.map(measured, (40, 100))
    assert more[OVER] - less[OVER] == pytest.approx(60 * MIB, rel=0.05)
    assert more[PEAK] - less[PEAK] == pytest.approx(60 * MIB, rel=0.05)


def test_what_a_fork_shares_with_the_worker_is_counted_once(bench: Bench) -> None:
    values = bench.measure(HOLDING, "of_its_own", **BRIEF)["values"]
    assert 60 * MIB < values[PEAK] < 110 * MIB
    assert abs(values[OVER]) < 4 * MIB


@pytest.mark.parametrize("method", METHODS)
def test_the_processor_time_of_processes_that_live_on_is_counted(bench: Bench, method: str) -> None:
    values = bench.measure(HOLDING, f"processor[method={method}]", **BRIEF, blocks=10)["values"]
    assert values[PROCESSOR] == pytest.approx(0.02, rel=0.25)


def test_work_that_is_hidden_in_a_subprocess_is_seen(bench: Bench) -> None:
    values = bench.measure(HOLDING, "hidden", **BRIEF)["values"]
    assert 60 * MIB < values[OVER] < 75 * MIB
    assert 0.005 < values[PROCESSOR] < 1


def test_the_helpers_of_torchs_compiler_are_left_out(bench: Bench) -> None:
    values = bench.measure(HOLDING, "helped", **BRIEF)["values"]
    assert values[PEAK] < 50 * MIB
    assert PROCESSOR not in values
