"""How right the time left is: what a session said, and when it ended.

    python benchmarks/time_left.py [--keep FOLDER] [SESSION...]
    python benchmarks/time_left.py --again benchmarks/kept/time_left

Each session is a `perfci compare` of its own process. The truth of what it says before each round
is when the process ended. The second half begins at half of that time. ``--again`` asks the
estimate as it is now about sessions that were kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))
sys.path.insert(0, str(ROOT))

import demo  # noqa: E402 (found by the path above)

from benchmarks.time_left_kept import Kept, again, keep, looks, opened, row, write  # noqa: E402

SAID = "PERFCI_TIME_LEFT"
SESSIONS = {
    "demo": ("main", "feature"),
    "one kernel, slower": ("main", "feature", "-k", "attention and 1"),
    "against itself": ("main", "main", "--allow-same-commit", "-k", "mixer", "--budget", "60s"),
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
    """Be perfci, and write down what it says, and of what."""
    from perfci.cli.main import main

    sys.argv[1:] = sys.argv[2:]
    with Path(os.environ[SAID]).open("w", encoding="utf-8") as file:
        keep(file)
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


def measured(name: str, folder: Path) -> Kept:
    """Run a session; return when it began and ended, and what it wrote down."""
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
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return Kept(name, began, time.time(), tuple(lines))


def run() -> int:
    """Measure the sessions that were asked for, or look at kept ones; print a row for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help=", ".join(SESSIONS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the sessions here")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="the sessions kept there")
    chosen = parser.parse_args()
    print("| session | took | said in its second half | within 25 % | median said ÷ true | all |")
    print("|---|--:|--:|--:|--:|--:|")
    if chosen.again:
        for kept in map(opened, sorted(chosen.again.glob("*.json.xz"))):
            print(row(kept, again(kept)), flush=True)
        return 0
    for name in chosen.sessions or SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            kept = measured(name, Path(folder))
        print(row(kept, looks(kept)), flush=True)
        if chosen.keep:
            write(kept, chosen.keep)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--be-session"]:
        be_session()
    raise SystemExit(run())
