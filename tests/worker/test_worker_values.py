"""The metrics that are no samples: what they hold, and the reason where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.driver import OF_A_DEVICE, Bench

HEAD = "import perfci\n\n@perfci.benchmark\ndef case():\n"
NOTHING = HEAD + "    return lambda: None\n"
MIB = 1 << 20


@pytest.fixture
def bench(forked_bench: Bench) -> Bench:
    """Workers that fork: but for cold start it is no matter how they start."""
    return forked_bench


def test_cold_start_is_the_sum_of_its_phases(tmp_path: Path) -> None:
    measured = Bench(tmp_path / "tree").measure(NOTHING)
    phases = measured["phases"]
    assert set(phases) == {"interpreter", "harness", "imports", "setup", "first_call"}
    assert all(seconds >= 0 for seconds in phases.values())
    assert sum(phases.values()) == pytest.approx(measured["values"]["cold_start"], abs=1e-6)
    assert phases["first_call"] == measured["first_call_s"]


@pytest.mark.slow  # it compares times that it measured
def test_setup_is_not_counted_as_the_work(bench: Bench) -> None:
    waiting = HEAD + "    import time\n    time.sleep(0.3)\n    return lambda: None\n"
    measured = bench.measure(waiting)
    assert measured["phases"]["setup"] >= 0.3
    assert measured["first_call_s"] < measured["phases"]["setup"]


@pytest.mark.slow  # it compares times that it measured
def test_imports_are_not_counted_as_set_up(bench: Bench) -> None:
    measured = bench.measure("import time\ntime.sleep(0.3)\n" + NOTHING)
    assert measured["values"]["import_time"] >= 0.3
    assert measured["phases"]["setup"] < measured["values"]["import_time"]


def test_what_has_no_device_is_missing_and_not_zero(bench: Bench) -> None:
    measured = bench.measure(NOTHING)
    for metric in OF_A_DEVICE:
        assert measured["missing"][metric] == "no accelerator"
        assert metric not in measured["values"]
    for metric in ("graph_breaks", "recompiles", "graphs"):
        assert measured["missing"][metric] == "not compiled"
    assert "accuracy_loss" in measured["missing"]


def test_the_peak_is_of_the_bursts_and_not_of_set_up(bench: Bench) -> None:
    big_setup = "    bytes(bytearray(200 << 20))\n"
    setting_up = bench.measure(HEAD + big_setup + "    return lambda: None\n")
    calling = bench.measure(HEAD + "    return lambda: len(bytearray(100 << 20))\n")
    plain = bench.measure(NOTHING)
    peak = "peak_host_memory"
    assert setting_up["values"][peak] < plain["values"][peak] + 50 * MIB
    assert calling["values"][peak] > plain["values"][peak] + 90 * MIB


MAPPED = "mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000).close()"


@pytest.mark.parametrize("where", ["at import", "in set-up", "in the first call"])
def test_memory_that_a_start_holds_for_a_moment_is_its_peak(bench: Bench, where: str) -> None:
    called = f"next(first, None) or {MAPPED}"
    source = (
        f"import itertools, mmap\n{MAPPED if where == 'at import' else ''}\n"
        f"{HEAD}    {MAPPED if where == 'in set-up' else ''}\n"
        "    first = itertools.chain([0], itertools.repeat(1))\n"
        f"    return lambda: {called if where == 'in the first call' else 'None'}\n"
    )
    plain, held = bench.measure(NOTHING)["values"], bench.measure(source)["values"]
    assert held["setup_peak_memory"] > plain["setup_peak_memory"] + 190 * MIB
    assert held["peak_host_memory"] < plain["peak_host_memory"] + 50 * MIB


CYCLES = """\
import gc
import perfci

@perfci.benchmark
def case():
    def call():
        for _ in range({cycles}):
            memory = [bytearray(200_000)]
            memory.append(memory)
        memory = None
        {then}
    return call
"""


@pytest.mark.parametrize("cycles", [0, 1, 3])
@pytest.mark.parametrize("then", ["pass", "gc.collect()"])
def test_objects_left_in_cycles_are_counted_and_the_peak_has_them(
    bench: Bench, cycles: int, then: str
) -> None:
    values = bench.measure(CYCLES.format(cycles=cycles, then=then))["values"]
    plain = bench.measure(NOTHING)["values"]
    left = cycles if then == "pass" else 0
    assert values.get("cyclic_garbage", 0.0) == left
    more = values["peak_host_memory"] - plain["peak_host_memory"]
    assert (more > 90 * MIB) == bool(left)  # Python waits for 700 objects or more


def test_growth_over_setup_is_what_the_calls_need(bench: Bench) -> None:
    calling = "lambda: len(bytearray(50 << 20)) + len(kept)"
    source = HEAD + f"    kept = bytearray(100 << 20)\n    return {calling}\n"
    growth = bench.measure(source)["values"]["host_memory_over_setup"]
    assert 45 * MIB < growth < 70 * MIB


def test_a_leak_shows_its_size_and_a_sound_call_none(bench: Bench) -> None:
    leak = HEAD + "    kept = []\n    return lambda: kept.append(bytearray(10_000))\n"
    found = bench.measure(leak)
    if "memory_growth" in found["missing"]:
        pytest.skip(found["missing"]["memory_growth"])
    assert 9_000 < found["values"]["memory_growth"] < 12_000
    sound = bench.measure(HEAD + "    return lambda: bytearray(10_000)\n")
    assert abs(sound["values"]["memory_growth"]) < 16


def test_a_metric_of_the_benchmarks_own_is_measured_after_the_bursts(bench: Bench) -> None:
    own = 'perfci.metric("size", lambda: 42, unit="bytes", exact=True)'
    measured = bench.measure(HEAD + f"    return (lambda: None), {own}\n")
    assert measured["values"]["size"] == 42.0
    (metric,) = measured["extra_metrics"]
    assert (metric["name"], metric["unit"], metric["kind"]) == ("size", "bytes", "exact")


NO_TORCH = """\
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)

sys.meta_path.insert(0, Refusing())
"""


def test_a_python_without_torch_has_nothing_to_warn_of(bench: Bench) -> None:
    measured = bench.measure(NO_TORCH + NOTHING)
    assert measured["warnings"] == []
    assert measured["missing"]["accuracy_loss"].startswith("only inference")


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_metric_that_is_no_finite_number_is_missing(bench: Bench, value: str) -> None:
    own = f'perfci.metric("odd", lambda: float("{value}"))'
    measured = bench.measure(HEAD + f"    return (lambda: None), {own}\n")
    assert measured["missing"]["odd"] == f"the benchmark gave {value}"
    assert measured["warnings"] == [f"odd is missing: the benchmark gave {value}"]
    assert "odd" not in measured["values"]


BREAKS = """
import sys
from perfci.metrics import Collector, Metric

METRICS = {Metric("fragile", "count", "exact", 0.0, "fail", absolute=True): "breaks"}

class Fragile(Collector):
    def HOOK(self, *given):
        sys.modules["bench_one"].whole = WHOLE
        {}[[]]

COLLECTOR = Fragile
"""
BREAKABLE = """
import perfci

whole = True

@perfci.benchmark
def case():
    import sys
    sys.modules["bench_one"] = sys.modules[__name__]
    def work():
        if not sys.modules["bench_one"].whole:
            raise ValueError("the work itself")
    return work
"""
HOOKS = ("before_setup", "set_up", "called", "warm", "after_bursts", "more_calls", "last")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_metric_that_breaks_is_missing_and_the_others_are_there(bench: Bench, hook: str) -> None:
    source = BREAKS.replace("HOOK", hook).replace('sys.modules["bench_one"].whole = WHOLE', "pass")
    bench.write(source, "breaks.py")
    measured = bench.measure(NOTHING, metrics={"breaks": "someones-breaks"})
    assert measured["missing"]["fragile"] == "TypeError: unhashable type: 'list'"
    assert measured["warnings"] == [
        "fragile could not be measured: TypeError: unhashable type: 'list'"
    ]
    assert {"peak_host_memory", "cold_start"} <= measured["values"].keys()


@pytest.mark.parametrize("hook", HOOKS[4:])
def test_work_that_fails_in_a_metrics_calls_fails_the_case(bench: Bench, hook: str) -> None:
    bench.write(BREAKS.replace("HOOK", hook).replace("WHOLE", "False"), "breaks.py")
    path = bench.write(BREAKABLE)
    order = bench.order(path, "case", metrics={"breaks": "someones-breaks"})
    with bench.start(order) as worker:
        worker.wait_for("ready")
        worker.send({"do": "finish"})
        failed = worker.wait_for("failed")
    assert failed["kind"] == "ValueError"
    assert "the work itself" in failed["message"]


def test_a_metric_of_the_benchmarks_own_that_raises_leaves_the_others(bench: Bench) -> None:
    own = 'perfci.metric("odd", lambda: {}[1]), perfci.metric("size", lambda: 42)'
    measured = bench.measure(HEAD + f"    return (lambda: None), {own}\n")
    assert measured["values"]["size"] == 42.0
    assert measured["missing"]["odd"] == "its function raised KeyError: 1"
    assert measured["warnings"] == ["odd is missing: its function raised KeyError: 1"]


def test_garbage_is_not_collected_during_bursts_unless_asked(bench: Bench) -> None:
    own = 'perfci.metric("enabled", lambda: float(__import__("gc").isenabled()))'
    source = HEAD + f"    return (lambda: None), {own}\n"
    assert bench.measure(source)["values"]["enabled"] == 0.0
    assert bench.measure(source, env={"PERFCI_GC": "1"})["values"]["enabled"] == 1.0


COLLECTS = {
    "a full collection": "gc.collect()",
    "the youngest objects": "gc.collect(0)",
    "every seventh call": "n % 7 or gc.collect()",
    "in a thread": "t = threading.Thread(target=gc.collect); t.start(); t.join()",
    "by Python, which the call lets": "gc.enable(); [[] for _ in range(100_000)]",
}
COLLECTING = """\
import gc, threading
import perfci

n = 0

@perfci.benchmark
def case():
    def call():
        global n
        n += 1
        {what}
    # Python 3.12 counts some hundred objects of its own as frozen
    left = lambda: float(gc.get_freeze_count() < 1000 and gc.isenabled())
    return call, perfci.metric("left", left)
"""


@pytest.mark.parametrize("what", ["pass", "gc.isenabled()", *COLLECTS.values()])
def test_collections_that_calls_start_are_counted_and_the_collector_can_be_left_to_python(
    bench: Bench, what: str
) -> None:
    path = bench.write(COLLECTING.format(what=what))
    with bench.start(bench.order(path, "case", growth=False)) as worker:
        worker.wait_for("ready")
        counted = [bench.block(worker, bursts=2, calls=4, lead_in=3)["collections"]]
        counted.append(bench.block(worker, 2, 4, 3, "python")["collections"])
        worker.send({"do": "finish"})
        values = worker.wait_for("output")["measurement"]["values"]
    assert [count > 0 for count in counted] == [what in COLLECTS.values()] * 2
    assert values["left"] == 1.0


@pytest.mark.parametrize("setting", ["gc.set_threshold(5, 10, 10)", "gc.disable()"])
def test_a_collector_that_the_work_has_set_counts_as_collecting(bench: Bench, setting: str) -> None:
    source = f"import gc\nimport perfci\n\n{setting}\n\n"
    path = bench.write(f"{source}@perfci.benchmark\ndef case():\n    return lambda: 1\n")
    with bench.start(bench.order(path, "case", growth=False)) as worker:
        worker.wait_for("ready")
        assert bench.block(worker, bursts=2, calls=4)["collections"] == 2


IN_A_CYCLE = """\
import perfci

alive = most = 0
collected = []

class Kept:
    def __init__(self):
        global alive, most
        alive += 1
        most = max(most, alive)
        self.memory = bytearray(50_000)
        self.itself = self

    def __del__(self):
        global alive, most
        alive -= 1
        if not alive:
            collected.append(most)
            most = 0

@perfci.benchmark
def case():
    return Kept, perfci.metric("bursts", lambda: float(collected.count({alive})))
"""


@pytest.mark.parametrize("lead_in", [0, 1])
def test_what_a_burst_left_in_cycles_is_gone_before_the_next(bench: Bench, lead_in: int) -> None:
    path = bench.write(IN_A_CYCLE.replace("{alive}", str(10 + lead_in)))
    with bench.start(bench.order(path, "case", growth=False)) as worker:
        worker.wait_for("ready")
        bench.block(worker, bursts=20, calls=10, lead_in=lead_in)
        worker.send({"do": "finish"})
        values = worker.wait_for("output")["measurement"]["values"]
    assert values["bursts"] >= 20


@pytest.mark.parametrize(
    ("at_import", "in_set_up"),
    [
        ("", "import random; drawn = random.random()"),
        ("import random\ndrawn = random.random()\n", "pass"),
        ("import numpy.random\n", "drawn = numpy.random.random()"),
        ("import numpy\ndrawn = numpy.random.random()\n", "pass"),
        ("", "import numpy; drawn = numpy.random.random()"),
    ],
)
def test_both_sides_draw_the_same_random_numbers(
    bench: Bench, at_import: str, in_set_up: str
) -> None:
    own = 'perfci.metric("drawn", lambda: drawn)'
    source = f"{at_import}{HEAD}    {in_set_up}\n    return (lambda: None), {own}\n"
    drawn = [bench.measure(source, seed=seed)["values"]["drawn"] for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


TORCH = "import torch\nimport perfci\n\n@perfci.benchmark\ndef case():\n"


@pytest.mark.torch
def test_an_inference_tells_its_items_and_its_accuracy(torch_bench: Bench) -> None:
    source = (
        TORCH + "    return perfci.inference(torch.nn.Linear(8, 8), torch.ones(4, 8), items=4)\n"
    )
    measured = torch_bench.measure(source)
    assert measured["items"] == 4
    assert measured["compiled"] is False
    assert 0 <= measured["values"]["accuracy_loss"] < 100


WRONG_WORK = """\
import torch
import perfci
from perfci.collector import Work

@perfci.benchmark
def case():
    return Work(lambda: None, accuracy=lambda: ({candidate}, {reference}))
"""


@pytest.mark.torch
def test_outputs_that_differ_in_shape_fail_the_case(torch_bench: Bench) -> None:
    source = WRONG_WORK.format(candidate="torch.ones(2)", reference="torch.ones(3)")
    path = torch_bench.write(source)
    with torch_bench.start(torch_bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        worker.send({"do": "finish"})
        failed = worker.wait_for("failed")
    assert (failed["kind"], failed["stage"]) == ("accuracy", "finish")
    assert "shape" in failed["message"]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("at_import", "in_set_up", "in_call", "threads"),
    [
        ("", "import torch", "", 2.0),
        ("import torch\n", "", "", 2.0),
        ("import torch\ntorch.set_num_threads(3)\n", "", "", 3.0),
        ("import torch\n", "torch.set_num_threads(1)", "", 1.0),
        ("import torch\n", "", "torch.set_num_threads(5)", 5.0),
    ],
)
def test_torch_has_the_workers_threads_unless_the_code_changes_them(
    bench: Bench, at_import: str, in_set_up: str, in_call: str, threads: float
) -> None:
    source = f"{at_import}{HEAD}    {in_set_up or 'pass'}\n    def call():\n"
    source += f"        {in_call or 'pass'}\n    return call\n"
    measured = bench.measure(source, env={"OMP_NUM_THREADS": "2"})
    assert measured["values"]["torch_threads"] == threads
    assert "torch_threads" not in bench.measure(HEAD + "    return int\n")["values"]


@pytest.mark.torch
def test_a_compiled_case_on_an_empty_cache_has_no_cold_start(torch_bench: Bench) -> None:
    source = (
        TORCH + '    return perfci.inference(torch.nn.ReLU(), torch.ones(4), mode="aot_eager")\n'
    )
    measured = torch_bench.measure(source, cold_cache=True)
    assert measured["missing"]["cold_start"] == "the compile cache was empty"
    assert "cold_start" not in measured["values"]
    assert measured["compiled"] is True
    assert measured["values"]["graphs"] == 1.0
    warm = torch_bench.measure(source, cold_cache=False)
    assert warm["values"]["cold_start"] > 0
