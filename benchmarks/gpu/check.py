"""``make gpu-check``: what a machine with a CUDA device shows, as JSON.

Runs the tests marked ``gpu``, then an A/A compare and a compare with a planted slow-down of the
demo on the device, and what torch, the driver and the card do (the other programs of this
package). Fits in ten minutes. Refuses to run where there is no CUDA device.

    python -m benchmarks.gpu.check [--json FILE] [--only PART]... [--budget TIME]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("opened", "kernel_time", "memory", "power")
PROGRAM_S = 90.0
TESTS_S = 200.0


def compare(repository: Path, base: str, head: str, *options: str) -> dict[str, Any]:
    """Run perfci and return what matters of its report."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "perfci", "compare", base, head, *options]
        done = subprocess.run([*command, "--json", str(out)], cwd=repository, check=False)
        if not out.exists():
            return {"exit_code": done.returncode}
        report = json.loads(out.read_text(encoding="utf-8"))
    rows = [
        {key: row[key] for key in ("case", "metric", "status", "ratio", "ratio_lo", "ratio_hi")}
        for row in report["results"]
    ]
    kept = ("verdict", "environment", "timing", "notes")
    return {"exit_code": done.returncode, "results": rows} | {key: report[key] for key in kept}


def demo(base: str, head: str, budget: str) -> dict[str, Any]:
    """Compare two branches of the demo, built in a folder of its own."""
    sys.path.insert(0, str(ROOT / "examples"))
    from demo import build

    with tempfile.TemporaryDirectory() as scratch:
        options = ("--allow-same-commit", "--budget", budget, "-k", "attention")
        return compare(build(Path(scratch) / "demo"), base, head, *options)


POWER = {
    "benchmarks/bench_product.py": """import perfci
import product
import torch


@perfci.benchmark
def power():
    matrix = product.matrix()
    return perfci.inference(torch.matmul, matrix, matrix)
""",
    "product.py": """import torch


def matrix():
    return torch.zeros(8192, 8192, dtype=torch.bfloat16, device="cuda")
""",
    "pyproject.toml": "[tool.perfci]\npython_path = ['.']\n",
}
"""Both sides do the same operations; head's operands need more power, and so a lower clock."""


def power_compare(budget: str) -> dict[str, Any]:
    """Compare products that differ in their power alone."""
    sys.path.insert(0, str(ROOT / "examples"))
    from demo import commit, git

    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch)
        for name, text in POWER.items():
            path = repository / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        git(repository, "init", "--quiet", "--initial-branch=main")
        commit(repository, "Zeros")
        product = repository / "product.py"
        product.write_text(product.read_text().replace("zeros", "rand"), encoding="utf-8")
        git(repository, "checkout", "--quiet", "-b", "feature")
        commit(repository, "Random numbers")
        return compare(repository, "main", "feature", "--budget", budget)


def tests() -> dict[str, Any]:
    """Run the tests marked ``gpu``."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-rA", "--timeout=100", "tests"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=TESTS_S,
    )
    return {"exit_code": done.returncode, "end": done.stdout[-6000:]}


def program(name: str) -> dict[str, Any]:
    """Run one of this package's programs and return its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.gpu.{name}"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
    )
    if done.returncode:
        return {"exit_code": done.returncode, "end": done.stderr[-3000:]}
    return {"exit_code": 0} | dict(json.loads(done.stdout.splitlines()[-1]))


def parts(budget: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what is run, by name, in order."""
    made: dict[str, Callable[[], dict[str, Any]]] = {
        name: (lambda name=name: program(name))  # type: ignore[misc]
        for name in PROGRAMS
    }
    return made | {
        "tests": tests,
        "power_compare": lambda: power_compare(budget),
        "same": lambda: demo("main", "main", budget),
        "slowed": lambda: demo("main", "feature", budget),
    }


EXPECTED = {"slowed": 1, "power_compare": 1}
"""Exit codes; zero for all other parts."""


def main() -> int:
    """Run the parts; exit with 1 where one did not end as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("gpu-check.json"))
    parser.add_argument("--only", action="append", default=[], metavar="PART")
    parser.add_argument("--budget", default="2m", help="for each of the three compares")
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: nothing to check")
    figures: dict[str, Any] = {"torch": torch.__version__, "card": torch.cuda.get_device_name(0)}
    failed = []
    for name, run in parts(options.budget).items():
        if options.only and name not in options.only:
            continue
        began = monotonic()
        try:
            figures[name] = run()
        except subprocess.TimeoutExpired as error:
            figures[name] = {"exit_code": -1, "timed_out": str(error)}
        figures[name]["seconds"] = round(monotonic() - began, 1)
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {json.dumps(figures[name])[:1500]}", flush=True)
        if figures[name]["exit_code"] != EXPECTED.get(name, 0):
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
