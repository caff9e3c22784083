"""Search ranges of public libraries in which somebody else has named the commit.

    python benchmarks/bisect/real.py predict --clone PATH --python PATH [--compare]
    python benchmarks/bisect/real.py --write docs/results/bisect.md

A clone of the library is read, never written to: the search runs in a copy whose newest commit adds
the benchmark of ``ranges/``. ``--python`` is one that has what the library needs. ``--compare``
searches nothing: it compares the commit that is known with the one before it, and says why.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
START = "<!-- measured: real ranges -->"
END = "<!-- end of real ranges -->"
IDENTITY = ("-c", "user.name=perfci", "-c", "user.email=perfci@example.org")


@dataclass(frozen=True, slots=True)
class Known:
    """A range, and the commits that its own people named, the oldest first; ``said`` is where."""

    repository: str
    good: str
    bad: str
    culprits: tuple[str, ...]
    said: str


RANGES = {
    "predict": Known(
        "cornellius-gp/gpytorch",
        "v1.14",
        "v1.15.2",
        ("c1c1a7bb",),
        "[#2736](https://github.com/cornellius-gp/gpytorch/issues/2736), "
        "[#2749](https://github.com/cornellius-gp/gpytorch/pull/2749)",
    ),
    "spearman": Known(
        "Lightning-AI/torchmetrics",
        "v1.7.0",
        "v1.8.0",
        ("568b68e7",),
        "[#3103](https://github.com/Lightning-AI/torchmetrics/pull/3103)",
    ),
    "retrieval": Known(
        "Lightning-AI/torchmetrics",
        "v0.9.3",
        "v0.10.0",
        ("3bf14911",),
        "[#3290](https://github.com/Lightning-AI/torchmetrics/issues/3290), "
        "[#3291](https://github.com/Lightning-AI/torchmetrics/pull/3291)",
    ),
    "interp": Known(
        "pydata/xarray",
        "v2024.10.0",
        "v2025.01.0",
        ("29fe679a",),
        "[#10287](https://github.com/pydata/xarray/issues/10287), "
        "[#10370](https://github.com/pydata/xarray/pull/10370)",
    ),
    "to_index": Known(
        "pydata/xarray",
        "v2025.07.1",
        "v2025.09.1",
        ("3c9217e2", "a13a2556"),
        "[#10619](https://github.com/pydata/xarray/pull/10619), "
        "[#11305](https://github.com/pydata/xarray/issues/11305)",
    ),
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def prepared(name: str, known: Known, clone: Path, work: Path) -> Path:
    """Return a copy of ``clone`` whose newest commit adds the benchmark to the bad end."""
    copy = work / name
    if not copy.exists():
        work.mkdir(parents=True, exist_ok=True)
        git(work, "clone", "--quiet", "--shared", "--no-checkout", str(clone.resolve()), name)
        add_benchmark(name, copy, known.bad)
    return copy


def add_benchmark(name: str, copy: Path, commit: str) -> None:
    """Check the commit out, and commit the benchmark on top of it."""
    git(copy, "checkout", "--quiet", "--detach", commit)
    (copy / "perfci.toml").write_text('benchmarks = "perfci_benchmarks"\n', encoding="utf-8")
    folder = copy / "perfci_benchmarks"
    folder.mkdir(exist_ok=True)
    bench = f"bench_{name}.py"
    (folder / bench).write_bytes((HERE / "ranges" / bench).read_bytes())
    git(copy, "add", "--force", "perfci.toml", "perfci_benchmarks")
    git(copy, "commit", "--quiet", "--message", "the benchmark")


def compared(name: str, copy: Path, python: Path) -> None:
    """Compare the first commit that is known, and the one before it, both with the benchmark."""
    culprit = RANGES[name].culprits[0]
    for tag, commit in (("before", f"{culprit}^"), ("after", culprit)):
        add_benchmark(name, copy, commit)
        git(copy, "tag", "--force", tag)
    command = [sys.executable, "-m", "perfci", "compare", "before", "after", "-k", name]
    subprocess.run([*command, "--python", str(python)], cwd=copy, check=False)


def searched(name: str, copy: Path, python: Path) -> None:
    """Run the search, and keep its answer and how long it took."""
    known, answer = RANGES[name], RESULTS / f"{name}.json"
    RESULTS.mkdir(exist_ok=True)
    command = [
        *(sys.executable, "-m", "perfci", "bisect", f"{known.good}..HEAD"),
        *("-k", name, "--metric", "latency_p50", "--python", str(python)),
        *("--budget", "3h", "--json", str(answer)),
    ]
    started = time.monotonic()
    code = subprocess.run(command, cwd=copy, check=False).returncode
    if code:
        raise SystemExit(f"perfci ended with {code}")
    found = json.loads(answer.read_text(encoding="utf-8"))
    found["minutes"] = round((time.monotonic() - started) / 60.0, 1)
    answer.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def row(name: str) -> str:
    """Return a range's row of the table."""
    known = RANGES[name]
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    answers = found["culprits"]
    named_shas = [[commit["sha"][:8] for commit in one["commits"]] for one in answers]
    right = named_shas == [[one] for one in known.culprits]
    named = "; ".join(map(_named, answers))
    return (
        f"| {known.repository} {known.good} … {known.bad} | `{name}` | {found['commits']} "
        f"| {found['comparisons']} | {math.log2(found['commits']) + 3:.1f} "
        f"| {found['minutes']:.0f} min | {named} | {'yes' if right else 'no'}: {known.said} |"
    )


def _named(culprit: dict[str, Any]) -> str:
    commits = ", ".join(f"`{one['sha'][:8]}`" for one in culprit["commits"])
    size = culprit["ratio"] - 1.0
    return f"{commits} {size:+.0%}, {min(culprit['probability'], 0.999):.1%}"


HEAD = """\
| range | benchmark | commits | comparisons | log2 n + 3 | time | answer, sure by | right |
|---|---|--:|--:|--:|--:|---|---|
"""


def main() -> None:
    """Search one range, or write the table of those that were searched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("range", nargs="?", choices=sorted(RANGES))
    parser.add_argument("--clone", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--work", type=Path, default=Path("real-ranges"))
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.range:
        if options.clone is None:
            parser.error("--clone is needed")
        copy = prepared(options.range, RANGES[options.range], options.clone, options.work)
        (compared if options.compare else searched)(options.range, copy, options.python.absolute())
    rows = [row(name) for name in RANGES if (RESULTS / f"{name}.json").exists()]
    table = HEAD + "\n".join(rows)
    print(table)
    if options.write:
        before, _, rest = options.write.read_text(encoding="utf-8").partition(START)
        after = rest.partition(END)[2]
        options.write.write_text(f"{before}{START}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
