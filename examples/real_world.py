"""Compare two released versions of a real library with perfci, and check it by hand.

    python examples/real_world.py einops [--out FOLDER] [--budget 10m] [--repeats 5]

Makes a throwaway git repository with one commit per release (the wheel's own files), writes the
benchmarks of ``examples/real_world/<library>``, runs ``perfci compare`` both ways round, compares
the newer release with itself ``--repeats`` times, and times the same calls by hand: fresh
processes in turn, ``timeit`` in each, the medians' ratio. Writes ``summary.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

from demo import IDENTITY, commit, git

HERE = Path(__file__).parent
RELEASES = {
    "einops": ("0.7.0", "0.8.1", ()),
    "torchmetrics": ("1.4.0", "1.8.2", ("lightning-utilities==0.15.2",)),
}
HAND = """
import importlib.util, json, statistics, sys, timeit
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("hand", sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
answer = {}
for name in sys.argv[3:]:
    torch.manual_seed(0)
    call = getattr(module, name)()
    timeit.timeit(call, number=2000)
    answer[name] = statistics.median(timeit.repeat(call, number=500, repeat=20)) / 500
print(json.dumps(answer))
"""


def build(library: str, folder: Path) -> tuple[Path, tuple[str, str]]:
    """Make the repository; return it and its two tags, the older release first."""
    older, newer, needed = RELEASES[library]
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / ".gitignore").write_text("__pycache__/\n")
    shutil.copytree(HERE / "real_world" / library, folder / "benchmarks")
    for requirement in needed:
        unpack(requirement, folder)
    for release in (older, newer):
        shutil.rmtree(folder / library, ignore_errors=True)
        unpack(f"{library}=={release}", folder)
        commit(folder, f"{library} {release}")
        git(folder, *IDENTITY, "tag", f"v{release}")
    return folder, (f"v{older}", f"v{newer}")


def unpack(requirement: str, folder: Path) -> None:
    """Put the files of a pure-Python wheel into ``folder``."""
    wheels = folder.parent / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", requirement]
    subprocess.run([*command, "--only-binary=:all:", "--dest", str(wheels)], check=True)
    name = requirement.split("==", maxsplit=1)[0].replace("-", "_")
    version = requirement.split("==")[1]
    (wheel,) = wheels.glob(f"{name}-{version}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for info in folder.glob("*.dist-info"):
        shutil.rmtree(info)


def perfci(repository: Path, base: str, head: str, out: Path, budget: str) -> dict[str, object]:
    """Run ``perfci compare`` and return its report."""
    command = [
        sys.executable,
        "-m",
        "perfci",
        "compare",
        base,
        head,
        "--allow-same-commit",
        "--budget",
        budget,
    ]
    done = subprocess.run(
        [*command, "--json", str(out), "--markdown", str(out.with_suffix(".md"))],
        cwd=repository,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"perfci ended with {done.returncode}")
    return json.loads(out.read_text())


def by_hand(repository: Path, tags: tuple[str, str], names: list[str], rounds: int = 6) -> dict:
    """Return newer ÷ older per benchmark: medians over fresh processes taken in turn."""
    trees = {}
    for tag in tags:
        trees[tag] = repository.parent / f"tree-{tag}"
        shutil.rmtree(trees[tag], ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", repository, trees[tag]], check=True)
        git(trees[tag], "checkout", "--quiet", tag)
    bench = next((repository / "benchmarks").glob("bench_*.py"))
    times: dict[str, dict[str, list[float]]] = {tag: {name: [] for name in names} for tag in tags}
    for number in range(rounds):
        for tag in tags if number % 2 else reversed(tags):
            command = [sys.executable, "-c", HAND, str(trees[tag]), str(bench), *names]
            said = subprocess.run(
                command, capture_output=True, text=True, check=True, cwd="/",
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ).stdout  # fmt: skip
            for name, seconds in json.loads(said.splitlines()[-1]).items():
                times[tag][name].append(seconds)
    return {
        name: statistics.median(times[tags[1]][name]) / statistics.median(times[tags[0]][name])
        for name in names
    }


def ratios(report: dict) -> dict[str, dict[str, object]]:
    """Return each case's latency row, cut to what the summary needs."""
    kept = ("status", "ratio", "ratio_lo", "ratio_hi", "p_adjusted")
    return {
        row["case"]: {key: row[key] for key in kept}
        for row in report["results"]
        if row["metric"] == "latency_p50"
    }


def alarms(report: dict) -> list[str]:
    """Return what a report of a release against itself calls regressed: each one is false."""
    return [f"{r['case']} {r['metric']}" for r in report["results"] if r["status"] == "regressed"]


def main() -> int:
    """Run everything for one library and write ``summary.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=sorted(RELEASES))
    parser.add_argument("--out", type=Path, default=Path("real-world-output"))
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    out = (options.out / options.library).resolve()
    repository, (older, newer) = build(options.library, out / "repository")
    forward = perfci(repository, older, newer, out / "forward.json", options.budget)
    backward = perfci(repository, newer, older, out / "backward.json", options.budget)
    same = [
        perfci(repository, newer, newer, out / f"same-{number}.json", options.budget)
        for number in range(1, options.repeats + 1)
    ]
    cases = list(ratios(forward))
    summary = {
        "library": options.library,
        "releases": [older, newer],
        "forward": {"verdict": forward["verdict"]["status"], "latency": ratios(forward)},
        "backward": {"verdict": backward["verdict"]["status"], "latency": ratios(backward)},
        "by_hand": by_hand(repository, (older, newer), cases),
        "same": [{"verdict": one["verdict"]["status"], "alarms": alarms(one)} for one in same],
        "comparisons_of_same": sum(len(one["results"]) for one in same),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
