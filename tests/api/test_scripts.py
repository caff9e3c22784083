"""``perfci.timer`` and ``perfci.script``: what a script times is a case, measured from within.

triton can't be installed where there is no GPU: a stand-in has the two functions that are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import perfci
from perfci.api.definition import AxisPoint, Benchmark
from perfci.api.scripts import script
from perfci.collector import Work

pytestmark = pytest.mark.torch

TIMERS = """\
import argparse
from torch.utils.benchmark import Compare, Timer
import torch

options = argparse.ArgumentParser()
options.add_argument("--device", required=True)
options.parse_args()
results = []
for size in (1, 64):
    for threads in (1, 2):
        results.append(Timer(
            stmt="y = x + size\\ny", setup="size = 10", globals={"x": torch.tensor(float(size))},
            label="add", sub_label=f"[{size}]", description="plain", num_threads=threads,
        ).blocked_autorange(min_run_time=1))
try:
    raise ValueError
except Exception:
    once = Timer("torch.ones(3)").timeit(100)
assert once.median == 1.0
Compare(results).print()
"""
BENCHES = """\
from triton.testing import Benchmark, do_bench, perf_report

@perf_report(Benchmark(["N"], [128, 256], "provider", ["torch", "mine"], args={"k": 2}))
def matmul(N, provider, k):
    assert do_bench(lambda: N * k, quantiles=[0.5, 0.2]) == [1.0, 1.0]
    return do_bench(lambda: (N, provider, k), warmup=1)

def bench_all():
    for size in (1, 2):
        assert do_bench(lambda: size, return_mode="all") == [1.0]

bench_all()
matmul.run(print_data=True)
"""


Measure = Callable[[Callable[[Any], None]], None]


def cases(folder: Path, *arguments: str) -> dict[str, Measure]:
    """Return what measures each case of a script, as a benchmark file in ``folder`` names it."""
    caller = compile("made = script(*arguments)", str(folder / "bench_it.py"), "exec")
    names: dict[str, Any] = {"script": script, "arguments": arguments}
    exec(caller, names)
    return {
        point.id: partial(measure, benchmark, point)
        for benchmark in names["made"]
        for point in benchmark.points()
    }


def measure(benchmark: Benchmark, point: AxisPoint, measure_work: Callable[[Any], None]) -> None:
    benchmark.function(measure_work, **point.values)


def works(measure: Measure) -> Work:
    made: list[Work] = []
    measure(made.append)
    (work,) = made
    return work


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for triton with ``do_bench`` and ``perf_report``, which run as triton's do."""
    testing = ModuleType("triton.testing")

    class Benchmark:
        def __init__(self, x_names: Any, x_vals: Any, arg: Any, lines: Any, args: Any) -> None:
            self.x_names, self.x_vals, self.arg, self.lines = x_names, x_vals, arg, lines
            self.args = args

    class Mark:
        def __init__(self, fn: Callable[..., Any], bench: Benchmark) -> None:
            self.fn, self.bench = fn, bench

        def run(self, **_: Any) -> None:
            for x in self.bench.x_vals:
                for line in self.bench.lines:
                    given = dict.fromkeys(self.bench.x_names, x) | {self.bench.arg: line}
                    self.fn(**given, **self.bench.args)

    vars(testing).update(
        Benchmark=Benchmark,
        do_bench=lambda *_, **__: pytest.fail("triton timed it"),
        perf_report=lambda bench: lambda fn: Mark(fn, bench),
    )
    package = ModuleType("triton")
    package.testing = testing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", package)
    monkeypatch.setitem(sys.modules, "triton.testing", testing)


@pytest.fixture
def timers(tmp_path: Path) -> Path:
    (tmp_path / "speed.py").write_text(TIMERS)
    return tmp_path


def test_each_timer_is_a_case_named_by_its_labels_and_threads(timers: Path) -> None:
    assert [*cases(timers, "speed.py", "--device", "cpu")] == [
        "speed.add[case=1_.plain]",
        "speed.add[case=1_.plain.2-threads]",
        "speed.add[case=64_.plain]",
        "speed.add[case=64_.plain.2-threads]",
        "speed.torch.ones_3",
    ]


def test_a_timers_statement_is_measured_with_its_own_values(timers: Path) -> None:
    import torch

    before = torch.get_num_threads()
    found = cases(timers, "speed.py", "--device", "cpu")
    work = works(found["speed.add[case=64_.plain.2-threads]"])
    try:
        assert work.call().item() == 74.0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert works(found["speed.torch.ones_3"]).call().tolist() == [1.0] * 3


@pytest.mark.usefixtures("triton")
def test_each_do_bench_is_a_case_and_a_report_names_its_own_by_arguments(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(BENCHES)
    found = cases(tmp_path, "kernels.py")
    assert [*found] == [
        "kernels.bench_all[case=1]",
        "kernels.bench_all[case=2]",
        "kernels.matmul[case=N-128.provider-torch.k-2]",
        "kernels.matmul[case=N-128.provider-torch.k-2-2]",
        "kernels.matmul[case=N-128.provider-mine.k-2]",
        "kernels.matmul[case=N-128.provider-mine.k-2-4]",
        "kernels.matmul[case=N-256.provider-torch.k-2]",
        "kernels.matmul[case=N-256.provider-torch.k-2-6]",
        "kernels.matmul[case=N-256.provider-mine.k-2]",
        "kernels.matmul[case=N-256.provider-mine.k-2-8]",
    ]
    measured: list[Any] = []
    found["kernels.bench_all[case=1]"](lambda work: measured.append(work.call()))
    found["kernels.matmul[case=N-256.provider-mine.k-2-8]"](lambda w: measured.append(w.call()))
    assert measured == [1, (256, "mine", 2)]


def test_a_script_imports_its_own_folders_modules_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tree", "tree/benchmarks"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "which_utils.py").write_text(f"FOLDER = {folder!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "tree")
    text = "import which_utils\nfrom torch.utils.benchmark import Timer\n"
    place = tmp_path / "tree/benchmarks"
    (place / "speed.py").write_text(f"{text}Timer(which_utils.FOLDER[5:]).timeit(1)\n")
    assert [*cases(place, "speed.py")] == ["speed.benchmarks"]
    sys.modules.pop("which_utils")


def test_a_timers_setup_runs_once_and_its_statement_sees_and_changes_its_names() -> None:
    seen: list[int] = []
    work = perfci.timer("n = n + 1\nseen.append(n)\nn", "n = 5", {"seen": seen})
    assert (work.call(), work.call()) == (6, 7)
    assert seen == [6, 7]
    assert perfci.timer("torch.tensor(2)").call().item() == 2
    assert perfci.timer("x = 1").call() is None
    assert perfci.timer().call() is None
