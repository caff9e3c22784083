"""A script's timed call, found and measured by a real worker."""

from __future__ import annotations

import pytest

from tests.worker.driver import Bench, samples

pytestmark = pytest.mark.processes
SCRIPT = """\
from pathlib import Path
from torch.utils.benchmark import Timer
from work import work

for size in (1, 2):
    Timer("work(size)", globals=globals(), label="work", sub_label=f"size {size}").timeit(10)
size = 3
Path("the_rest_ran").touch()
"""


def test_a_worker_measures_a_scripts_call_where_it_stands(forked_bench: Bench) -> None:
    forked_bench.write(SCRIPT, "benchmarks/speed.py")
    sizes = "SIZES = set()\n\ndef work(size):\n    SIZES.add(size)\n"
    forked_bench.write(sizes, "benchmarks/work.py")
    path = forked_bench.write("import perfci\n\nspeed = perfci.script('speed.py')\n")
    found = forked_bench.discover()
    assert [case["id"] for case in found["cases"]] == [
        "speed.work[case=size_1]",
        "speed.work[case=size_2]",
    ]
    assert not found["failures"]
    (forked_bench.root / "the_rest_ran").unlink()
    own = "import perfci, work\nspeed = perfci.script('speed.py')\n"
    path.write_text(f"{own}assert not work.SIZES  # only what is measured runs\n")
    (forked_bench.root / "the_rest_ran").unlink(missing_ok=True)
    measured = forked_bench.measure(path, "speed.work[case=size_1]")
    assert samples(measured["samples_ns"])
