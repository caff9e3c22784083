"""``make gpu-check``: what a machine with a CUDA device shows, as JSON.

Runs the tests marked ``gpu``, then an A/A compare and a compare with a planted slow-down of the
demo on the device. Fits in ten minutes. Refuses to run where there is no CUDA device.

    python benchmarks/gpu_check.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))


def compare(repository: Path, base: str, head: str) -> dict[str, object]:
    """Run perfci and return what matters of its report."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "report.json"
        command = [
            sys.executable,
            "-m",
            "perfci",
            "compare",
            base,
            head,
            "--same",
            "--budget",
            "3m",
        ]
        done = subprocess.run([*command, "--json", str(out)], cwd=repository, check=False)
        report = json.loads(out.read_text())
    rows = [
        {key: row[key] for key in ("case", "metric", "status", "ratio", "ratio_lo", "ratio_hi")}
        for row in report["results"]
    ]
    return {
        "exit_code": done.returncode,
        "verdict": report["verdict"],
        "environment": report["environment"],
        "timing": report["timing"],
        "results": rows,
        "notes": report["notes"],
    }


def main() -> int:
    """Run everything; exit with 1 where a test failed or a verdict was not the expected one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("gpu-check.json"))
    options = parser.parse_args()
    import torch
    from demo import build

    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: nothing to check")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "-q"], cwd=ROOT, check=False
    ).returncode
    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        same = compare(repository, "main", "main")
        slowed = compare(repository, "main", "feature")
    figures = {"tests_exit_code": tests, "same": same, "slowed": slowed}
    options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))
    return 0 if tests == 0 and same["exit_code"] == 0 and slowed["exit_code"] == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
