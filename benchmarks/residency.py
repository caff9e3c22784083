"""What it costs to have one side alive at a time: rounds, time and precision, by A/A.

    python benchmarks/residency.py [--json FILE] [--rounds N] [--only demo|simulated] [-k CASES]

The demo's eager cases on the host, and a kernel of torch's simulated device
(``tests/worker/simulated_device.cpp``), each against itself under both values of ``residency``. Of
each case: the spread of a round's log ratio, the half width of the interval that five rounds give,
and how many rounds a width of 2.5 % takes.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scipy.stats import t as student

from benchmarks.observed import be_session, is_session, outputs_of, pairs_of, show
from perfci.verdict.sampled_comparisons import pair_values

ROOT = Path(__file__).resolve().parents[1]
METRIC = "latency_p50"
CONFIGURATION = """\
benchmarks = "benchmarks"
python_path = ["."]
rounds = {rounds}
max_rounds = {rounds}
residency = "{residency}"
pass_env = ["SIMULATED"]
budget = "1200s"
"""
HALF_WIDTH = 0.025


def session(repository: Path, chosen: str, rounds: int, residency: str) -> dict[str, Any]:
    """Run one compare of main with itself. Return what each case's rounds gave."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "perfci.toml"
        configuration.write_text(CONFIGURATION.format(rounds=rounds, residency=residency))
        began = monotonic()
        outputs = outputs_of(
            __file__,
            repository,
            "",
            *("compare", "main", "main", "--allow-same-commit", "--measure-same-code", "--quiet"),
            *("-k", chosen, "--config", str(configuration)),
        )
    of_cases = {}
    for case, pairs in pairs_of(outputs, [METRIC]).items():
        values = [pair_values(base, head, METRIC) for base, head in pairs]
        logs = [math.log(head / base) for base, head in values]
        spread = statistics.stdev(logs)
        enough = (n for n in range(3, 999) if _half_width(spread, n) < HALF_WIDTH)
        of_cases[case] = {
            "rounds": len(logs),
            "spread": spread,
            "half_width_of_5": _half_width(spread, 5),
            "rounds_for_2.5_%": next(enough, None),
            "logs": [round(log, 4) for log in logs],
        }
    return {"residency": residency, "wall_s": monotonic() - began, "cases": of_cases}


def _half_width(spread: float, rounds: int) -> float:
    return float(student.ppf(0.975, rounds - 1)) * spread / math.sqrt(rounds)


def simulated(folder: Path) -> Path:
    """Build torch's simulated device, and return a repository with a benchmark of it."""
    import torch
    from demo import commit, git

    from tests.worker.test_devices import SIMULATED

    headers = Path(torch.__file__).parent
    library = folder / "simulated.so"
    source = ROOT / "tests" / "worker" / "simulated_device.cpp"
    options = ["-O0", "-std=c++20", "-shared", "-fPIC", f"-I{headers / 'include'}"]
    linked = [f"-L{headers / 'lib'}", "-lc10"]
    subprocess.run(["g++", *options, "-o", library, source, *linked], check=True)
    os.environ["SIMULATED"] = str(library)
    repository = folder / "simulated"
    (repository / "benchmarks").mkdir(parents=True)
    (repository / "benchmarks" / "bench_kernel.py").write_text(SIMULATED, encoding="utf-8")
    git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository, "A kernel")
    return repository


def main() -> int:
    """Measure both kinds of work under each residency and print the figures, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", choices=("demo", "simulated"))
    parser.add_argument("-k", dest="selection", default="attention or mixer")
    options = parser.parse_args()
    from demo import build

    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, chosen in (("demo", options.selection), ("simulated", "named")):
            if options.only in {None, name}:
                make = build if name == "demo" else simulated
                repository = make(Path(scratch) / "demo" if name == "demo" else Path(scratch))
                figures += [
                    session(repository, chosen, options.rounds, residency)
                    for residency in ("together", "alternate")
                ]
    show(figures, options.json)
    return 0


if __name__ == "__main__":
    if is_session():
        be_session()
    else:
        raise SystemExit(main())
