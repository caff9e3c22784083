"""How right the time left is: what a session said, and when it ended.

    python benchmarks/time_left.py [--json FILE] [SESSION...]

Each session is a `perfci compare` of its own process. What it says before each round is taken from
its progress, and the truth is when the process ended. The second half begins at half of that time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))
sys.path.insert(0, str(ROOT))

import demo  # noqa: E402 (found by the path above)

SAID = "PERFCI_TIME_LEFT"
SESSIONS = {
    "demo": ("main", "feature"),
    "one kernel, slower": ("main", "feature", "-k", "attention and 1"),
    "against itself": ("main", "main", "--same", "-k", "mixer", "--budget", "60s"),
    "plain Python": ("main", "feature"),
}
PLAIN = """\
import perfci
from lib import work

@perfci.benchmark(n=[1, 2, 3, 4, 5, 6])
def counting(n):
    return lambda: work(n)
"""


def be_session() -> None:
    """Be perfci, and write down what it says."""
    from perfci.cli import caller
    from perfci.cli.main import main

    shown = caller.ProgressLine.__call__

    def said(line: caller.ProgressLine, progress: caller.Progress) -> None:
        with Path(os.environ[SAID]).open("a", encoding="ascii") as file:
            file.write(json.dumps([time.time(), progress.left_s, progress.done]) + "\n")
        shown(line, progress)

    caller.ProgressLine.__call__ = said  # type: ignore[method-assign]
    sys.argv[1:] = sys.argv[2:]
    main()


def plain(folder: Path) -> Path:
    """Make a project without torch: six cases, one module that gets 10 % slower."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "bench_plain.py").write_text(PLAIN)
    (folder / "pyproject.toml").write_text('[tool.perfci]\npython_path = ["."]\n')
    demo.git(folder, "init", "--quiet", "--initial-branch=main")
    for branch, loops in (("main", 1000), ("feature", 1100)):
        (folder / "lib.py").write_text(f"def work(n):\n    return sum(range(n * {loops}))\n")
        if branch != "main":
            demo.git(folder, "checkout", "--quiet", "-b", branch)
        demo.commit(folder, branch)
    return folder


def measured(name: str, folder: Path) -> list[tuple[float, float, float]]:
    """Run a session; return, for each time that it said one: when (a share), said, and true."""
    repository = (
        plain(folder / "repository")
        if name == "plain Python"
        else demo.build(folder / "repository")
    )
    file = folder / "said"
    began = time.time()
    subprocess.run(
        [sys.executable, __file__, "--be-session", "compare", *SESSIONS[name]],
        cwd=repository,
        env={**os.environ, SAID: str(file)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    whole = time.time() - began
    found = []
    for line in file.read_text(encoding="ascii").splitlines():
        at, left, _ = json.loads(line)
        if left is not None:
            found.append(((at - began) / whole, left, began + whole - at))
    return found


def row(name: str, found: list[tuple[float, float, float]]) -> str:
    """Return a row of the table: the second half's estimates, as shares of the truth."""
    half = [said / true for at, said, true in found if at >= 0.5]
    near = sum(abs(share - 1.0) <= 0.25 for share in half)
    seconds = found[-1][2] / (1.0 - found[-1][0]) if found else 0.0
    if not half:
        return f"| {name} | {seconds:.0f} s | 0 | | | |"
    return (
        f"| {name} | {seconds:.0f} s | {len(half)} | {near} | {statistics.median(half):.2f} "
        f"| {min(half):.2f} to {max(half):.2f} |"
    )


def run() -> int:
    """Measure the sessions that were asked for, and print a row for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help=", ".join(SESSIONS))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print("| session | took | said in its second half | within 25 % | median said ÷ true | all |")
    print("|---|--:|--:|--:|--:|--:|")
    every = {}
    for name in chosen.sessions or SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            every[name] = measured(name, Path(folder))
        print(row(name, every[name]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(every) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--be-session"]:
        be_session()
    raise SystemExit(run())
