"""Whether the first line of a why names what was planted, and where: a repository for each fault.

    python benchmarks/planted.py [--only KIND] [--unchanged] [--json FILE]

Each repository has a base and a head that differ in one line of ``model.py``, or few. ``explain``
says why; its first line is right where it names both that line and the thing. ``--unchanged``
explains each base against itself, and each head: what is said of those is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from demo import commit, git  # noqa: E402

BENCHMARK = """\
import perfci
import torch
from model import forward


@perfci.benchmark
def planted():
    torch.manual_seed(0)
    x, weight = torch.randn(512, 512), torch.randn(512, 512)
    return lambda: forward(x, weight)
"""
EAGER = """\
import torch


def forward(x, weight):
    y = torch.relu(x @ weight)
    {0}
    return y.sum()
"""
COMPILED = """\
import torch


@torch.library.custom_op("planted::squash", mutates_args=())
def squash(x: torch.Tensor) -> torch.Tensor:
    return x.tanh()


@squash.register_fake
def _(x):
    return torch.empty_like(x)


@torch.compile
def forward(x, weight):
    y = torch.relu(x) * 2
    {0}
    return y * weight + 1
"""
LOOP = """\
import torch


def total(values):
    found = 0.0
    for value in values:
        {0}
    return found


def forward(x, weight):
    return total(x[0].tolist()) + weight.sum()
"""
_SLOW = "import time\n\nended = time.perf_counter() + 0.05\nwhile time.perf_counter() < ended:\n"


@dataclass(frozen=True, slots=True)
class Fault:
    """A line of ``model`` on both sides; a right first line has one of ``names`` in it."""

    model: str
    base: str
    head: str
    names: tuple[str, ...]


FAULTS = {
    "extra-copy": Fault(EAGER, "pass", "y = y.clone()", ("copy_", "clone")),
    "extra-operator": Fault(EAGER, "pass", "y = torch.tanh(y)", ("tanh",)),
    "shape": Fault(
        EAGER, "y = y + (x[:256] @ weight).sum()", "y = y + (x[:448] @ weight).sum()", ("[448,",)
    ),
    "precision": Fault(EAGER, "y = y @ weight", "y = y.double() @ weight.double()", ("float64",)),
    "item": Fault(
        EAGER,
        "y = y * 2",
        "y = y * 2 if y.sum().item() > 0 else y",
        ("item", "_local_scalar_dense"),
    ),
    "import": Fault("import torch\n{0}\n" + EAGER.format("pass"), "", "import tables", ("tables",)),
    "buffer": Fault(
        EAGER,
        "y = y + torch.empty(512, 512)[:512].copy_(x)",
        "y = y + torch.empty(8192, 512)[:512].copy_(x)",
        ("iB", "MB"),
    ),
    "fusion": Fault(COMPILED, "y = y.tanh()", "y = squash(y)", ("kernels", "squash")),
    "graph-break": Fault(COMPILED, "pass", "print(end='')", ("break",)),
    "loop": Fault(
        LOOP, "found += value", "found += sum(value * turn for turn in range(9))", ("total",)
    ),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said first, and whether it is right; of unchanged code nothing is."""

    kind: str
    sides: str
    first: str
    right: bool
    took_s: float


def main() -> int:
    """Plant, explain, and print a table; 1 where a first line is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="KIND", choices=FAULTS)
    parser.add_argument("--unchanged", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print("| fault | sides | right | first line | took |\n|---|---|---|---|--:|", flush=True)
    answers = []
    for kind in [options.only] if options.only else FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            repository = Path(folder) / "repository"
            place = _plant(repository, FAULTS[kind])
            pairs = (
                (("base", "base"), ("head", "head")) if options.unchanged else [("base", "head")]
            )
            for base, head in pairs:
                one = _explained(repository, kind, base, head, place)
                right = "yes" if one.right else "**no**"
                said = one.first.replace("|", "\\|")
                print(
                    f"| {kind} | {base}, {head} | {right} | {said} | {one.took_s:.0f} s |",
                    flush=True,
                )
                answers.append(one)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in answers], indent=2) + "\n")
    return 0 if all(one.right for one in answers) else 1


def _plant(repository: Path, fault: Fault) -> str:
    """Make base and head; return head's place, as file:line."""
    (repository / "benchmarks").mkdir(parents=True)
    git(repository, "init", "--quiet", "--initial-branch=main")
    (repository / "benchmarks" / "bench_planted.py").write_text(BENCHMARK)
    (repository / "tables.py").write_text(_SLOW + "    pass\n")
    for side, line in (("base", fault.base), ("head", fault.head)):
        (repository / "model.py").write_text(fault.model.format(line))
        commit(repository, side)
        git(repository, "tag", side)
    return f"model.py:{fault.model[: fault.model.index('{0}')].count(chr(10)) + 1}"


def _explained(repository: Path, kind: str, base: str, head: str, place: str) -> Answer:
    command = [sys.executable, "-m", "perfci", "explain", base, head, "--quiet", "--within", "5m"]
    began = time.monotonic()
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < 2:
        sys.exit(done.stderr or done.stdout)
    first = lines[1].strip()
    if base == head:
        right = first == "nothing differs inside" or first.startswith("hint: ")
    else:
        named = any(name in first for name in FAULTS[kind].names)
        right = named and first.removesuffix(" (a changed line)").endswith(f", {place}")
    return Answer(kind, f"{base}, {head}", first, right, took_s)


if __name__ == "__main__":
    sys.exit(main())
