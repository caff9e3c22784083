"""Would counts of one round do instead of measuring? Three questions, and what the answers are.

    python -m benchmarks.screen                     # all that needs no clone, about three minutes
    python -m benchmarks.screen --only planted
    python -m benchmarks.screen --clone CLONE --package einops --files examples/real_world/einops

``planted``: of the corpus' kinds of work with more units, and of the faults of
``benchmarks/planted``, how many have other counts. ``equal``: of the slow-downs in ``equal``, made
to keep their counts, which are missed. ``identical``: how often the counts of two processes of the
same code differ. ``real``: in how many consecutive commits of a library the screen would spare a
case that has loaded changed code. Outcomes go into ``results.json``, tables are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # as in perfci's workers, before torch reads it
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch._dynamo  # the processes that count are forked from this one
import torch._inductor.compile_fx
import torch.profiler  # noqa: F401

from benchmarks.planted import read
from benchmarks.screen.counts import cases_of, counts
from benchmarks.screen.outcomes import Outcome, compared
from benchmarks.screen.table import RESULTS

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent
SHARES = (0.01, 0.02, 0.05, 0.10)


def planted() -> Iterator[Outcome]:
    """Yield the kinds of the corpus with each share, and with none."""
    with tempfile.TemporaryDirectory() as folder:
        base = _kinds(Path(folder) / "base", 0.0)
        cases = cases_of(base, [str(base)], sorted((base / "benchmarks").glob("bench_*.py")))
        before = {case: counts(base, [str(base)], file, case) for file, case in cases}
        for file, case in cases:
            again = counts(base, [str(base)], file, case)
            yield compared("identical", case, "corpus", (before[case], again))
        for share in SHARES:
            head = _kinds(Path(folder) / f"{share}", share)
            for file, case in cases:
                after = counts(head, [str(head)], head / file.relative_to(base), case)
                yield compared("planted", case, f"{share:.0%}", (before[case], after))


def faults() -> Iterator[Outcome]:
    """Yield the faults of ``benchmarks/planted``, one edit of a small project each."""
    for name in ("first", "second"):
        yield from _faults("faults", BENCHMARKS / "planted" / name)


def _kinds(root: Path, share: float) -> Path:
    shutil.copytree(BENCHMARKS / "corpus" / "kinds", root)
    file = root / "work" / "planted.py"
    file.write_text(file.read_text().replace(": 0.0", f": {share}"))
    return root


def equal() -> Iterator[Outcome]:
    """Yield the slow-downs that are made to keep their counts."""
    yield from _faults("equal", HERE / "equal")


def _faults(question: str, folder: Path) -> Iterator[Outcome]:
    for file in sorted(folder.glob("*.txt")):
        fault = read(file.read_text())
        with tempfile.TemporaryDirectory() as scratch:
            sides = []
            for side, files in (("base", fault.base), ("head", fault.head)):
                root = Path(scratch) / side
                for name, text in files.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
                (file_of_side,) = (root / "benchmarks").glob("bench_*.py")
                paths = [str(root), str(root / "src")]
                ((_, case),) = cases_of(root, paths, [file_of_side])
                sides.append(counts(root, paths, file_of_side, case))
        yield compared(question, file.stem, folder.name, (sides[0], sides[1]))


def identical() -> Iterator[Outcome]:
    """Yield benchmarks of many kinds, each side a process of the same code."""
    for name, root in (
        ("unchanged", BENCHMARKS / "unchanged"),
        ("variable", HERE / "identical"),
    ):
        for file, case in cases_of(root, [str(root)], sorted(root.rglob("bench_*.py"))):
            sides = [counts(root, [str(root)], file, case) for _ in range(2)]
            yield compared("identical", case, name, (sides[0], sides[1]))


def real(clone: Path, package: str, files: Path, commits: int) -> Iterator[Outcome]:
    """Yield the last commits that change ``package``, each with its parent, by ``files``."""
    git = ["git", "-C", str(clone)]
    listed = [*git, "log", "--no-merges", f"-{commits}", "--format=%h", "HEAD", "--", package]
    heads = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    for head in heads:
        with tempfile.TemporaryDirectory() as scratch:
            roots = []
            for name, commit in (("base", f"{head}~1"), ("head", head)):
                root = Path(scratch) / name
                root.mkdir()
                tree = subprocess.run(
                    [*git, "archive", commit, package], capture_output=True, check=True
                )
                subprocess.run(["tar", "-x"], cwd=root, input=tree.stdout, check=True)
                shutil.copytree(files, root / "benchmarks")
                roots.append(root)
            yield from _pair(roots, str(Path(package).parent), head)


def _pair(roots: Sequence[Path], source: str, head: str) -> Iterator[Outcome]:
    base, after = roots
    found = sorted((base / "benchmarks").glob("bench_*.py"))
    try:
        cases = cases_of(base, [str(base / source)], found)
    except ValueError:
        return  # that commit doesn't run here
    for file, case in cases:
        sides = (
            counts(base, [str(base / source)], file, case),
            counts(after, [str(after / source)], after / file.relative_to(base), case),
        )
        loaded = {*sides[0].loaded, *sides[1].loaded}
        changed = any(_text(base / name) != _text(after / name) for name in loaded)
        row = asdict(compared("real", case, head, sides)) | {"changed": changed}
        yield Outcome(**row)


def _text(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def _keep(row: Outcome) -> None:
    """Put the outcome in the place of that of an earlier run."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    key = (row.set, row.case, row.plant)
    kept = [old for old in kept if (old["set"], old["case"], old["plant"]) != key]
    kept.append(asdict(row))
    kept.sort(key=lambda each: (each["set"], each["case"], each["plant"]))
    RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")


def main(words: Sequence[str]) -> int:
    """Count, keep the outcomes, and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screen")
    parser.add_argument("--only", choices=["planted", "faults", "equal", "identical"])
    parser.add_argument("--clone", type=Path)
    parser.add_argument("--package", help="the package's folder in the clone")
    parser.add_argument("--files", type=Path, help="the folder of its benchmarks")
    parser.add_argument("--commits", type=int, default=20)
    given = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no process may outlive this one
    if given.clone:
        questions = [real(given.clone, given.package, given.files, given.commits)]
    else:
        every = {"planted": planted, "faults": faults, "equal": equal, "identical": identical}
        questions = [each() for name, each in every.items() if given.only in (None, name)]
    for question in questions:
        for row in question:
            name = f"{row.set:9} {row.plant:10} {row.case:20} {row.ratio:5.2f}×"
            answer = "other processes" if row.processes else " ".join(row.differing) or "equal"
            print(name, answer, f"({row.example})" if row.example else "", flush=True)
            _keep(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
