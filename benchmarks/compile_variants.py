"""Changes of a compiled model, and whether `perfci compare` decides its compile time.

    PYTHONPATH=. python benchmarks/compile_variants.py [VARIANT]...

Each variant is a commit on top of the same base, compared once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from demo import commit, git

MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = torch.nn.functional.gelu(self.grow(self.norm(x)))
        return x + self.shrink(y)


def model():
    return torch.compile(nn.Sequential(*[Block(64) for _ in range(6)]))
"""
BENCHMARK = """\
import torch
from model import model

import perfci


@perfci.benchmark
def blocks():
    net, x = model(), torch.randn(16, 64)
    return lambda: net(x)
"""
VARIANTS = {
    "a comment": ("import torch\n", "# As in the paper.\nimport torch\n"),
    "a graph break": (
        "return x + self.shrink(y)",
        "torch._dynamo.graph_break()\n        return x + self.shrink(y)",
    ),
    "8 blocks instead of 6": ("range(6)", "range(8)"),
    "a fusion lost": ("gelu(self.grow(self.norm(x)))", "gelu(self.grow(self.norm(x)).cumsum(-1))"),
    "max-autotune": ("range(6)])", 'range(6)]), mode="max-autotune"'),
    "dynamic shapes": ("range(6)])", "range(6)]), dynamic=True"),
}
CONFIGURATION = """\
[project]
name = "variants"
version = "1"
[tool.perfci]
python_path = ["."]
"""


def build(repository: Path) -> None:
    """Make a repository whose branch ``main`` has the model, and a branch for each variant."""
    (repository / "benchmarks").mkdir(parents=True)
    (repository / "model.py").write_text(MODEL)
    (repository / "benchmarks" / "bench_blocks.py").write_text(BENCHMARK)
    (repository / "pyproject.toml").write_text(CONFIGURATION)
    git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository, "Six blocks")
    for name, (before, after) in VARIANTS.items():
        git(repository, "checkout", "--quiet", "-b", branch(name), "main")
        (repository / "model.py").write_text(MODEL.replace(before, after))
        commit(repository, name)


def branch(name: str) -> str:
    """Return the branch of a variant."""
    return name.replace(" ", "-")


def compared(repository: Path, variant: str) -> dict[str, Any]:
    """Compare the variant with main, and return the report."""
    report = repository.parent / "report.json"
    command = [sys.executable, "-m", "perfci", "compare", "main", branch(variant)]
    subprocess.run([*command, "--quiet", "--json", str(report)], cwd=repository, check=False)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def main() -> None:
    """Compare the variants that the command line names, else all."""
    parser = argparse.ArgumentParser(prog="python benchmarks/compile_variants.py")
    parser.add_argument("variants", nargs="*", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "repository"
        build(repository)
        for variant in given.variants or VARIANTS:
            report = compared(repository, variant)
            rows = {row["metric"]: row for row in report["results"]}
            row = rows["compile_time"]
            sides = (row[side] for side in ("base", "head"))
            times = " → ".join(f"{side['center']:.1f}" for side in sides if side)
            cells = (variant, times, row["status"], report["verdict"]["status"])
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
