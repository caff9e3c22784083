"""Build 60 commits with two regressions in them, record their nights, and show what is found.

    python examples/nightly_demo.py [FOLDER]

``examples/nightly/commits.py`` says what is planted. Five of the sixty nights are really measured,
by ``perfci nightly``; the others are replayed (``examples/nightly/replay.py``), for measuring all
would take ten minutes. ``perfci trend`` has to name the two, and not the busy night between them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nightly.commits import COMMITS, OUTLIER, RAMP, STEP, build, near
from nightly.replay import replayed

from perfci.history.store import open_history
from perfci.measure.checkout.commits import commits
from perfci.measure.checkout.git import open_repository
from perfci.model.run import RecordedRun

NEWEST = 2
EARLIER = (8, 27, 50)
"""Commits that are measured besides the newest, apart from each other: on a busy machine one night
is off, and should then stand alone."""


def main() -> int:
    """Build, record, analyse, and say whether what was planted was found."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "nightly-demo-output").resolve()
    repository, history = out / "repository", out / "history.sqlite"
    print(f"Building {COMMITS} commits in {repository} …", flush=True)
    build(repository, datetime.now(UTC))
    history.unlink(missing_ok=True)
    print("\nMeasuring the newest two, and three earlier ones, for real:\n", flush=True)
    nightly(repository, history, "--commits", f"main~{NEWEST}..main")
    for number in EARLIER:
        back = COMMITS - number
        nightly(repository, history, "--commits", f"main~{back + 1}..main~{back}")
    say_replayed(replay(repository, history))
    print("\nStarting the night again over all 60: nothing is measured twice.\n", flush=True)
    again = nightly(repository, history, "--commits", "main")
    files = {"--html": out / "site", "--markdown": out / "trend.md", "--json": out / "trend.json"}
    options = [word for option, path in files.items() for word in (option, str(path))]
    print("\nperfci trend:\n", flush=True)
    perfci(repository, "trend", "--history", str(history), *options)
    print("\nLeft behind:")
    for name, path in {"repository": repository, "history": history, **files}.items():
        print(f"  {name.lstrip('-'):<11} {path}")
    good = say_found(json.loads(files["--json"].read_text()), repository)
    good = good and "nothing to record" in again
    print(f"\nOpen {files['--html'] / 'index.html'} in a browser: it needs no network.")
    return 0 if good else 1


def nightly(repository: Path, history: Path, *arguments: str) -> str:
    """Run ``perfci nightly``; return what it printed."""
    return perfci(repository, "nightly", "--history", str(history), "--quiet", *arguments)


def perfci(repository: Path, *arguments: str) -> str:
    """Run perfci in ``repository`` and print and return what it says. It has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "perfci", *arguments],
        cwd=repository,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise SystemExit(f"perfci {arguments[0]} ended with {done.returncode}")
    return done.stdout


def replay(repository: Path, history: Path) -> tuple[RecordedRun, ...]:
    """Record a made run for each commit that was not measured; return them."""
    branch = commits(open_repository(repository), "main")
    with open_history(str(history)) as opened:
        real = tuple(opened.recorded_runs())
        made = replayed(branch[::-1], real)
        opened.record(made)
    return made


def say_replayed(made: tuple[RecordedRun, ...]) -> None:
    """Say loudly which numbers nobody measured."""
    print(
        f"\n*** {len(made)} of {COMMITS} nights are REPLAYED: their numbers were not measured but\n"
        "*** made from the planted costs and a noise model (examples/nightly/replay.py), scaled\n"
        "*** to this machine by those that were. In the history their source is `replayed`.",
        flush=True,
    )


def say_found(trend: dict[str, Any], repository: Path) -> bool:
    """Say what was planted and what was found; return whether they agree.

    A change is where it was planted when it is within two commits of it; the ramp may be told as
    a step inside it.
    """
    order = [commit.sha for commit in commits(open_repository(repository), "main")[::-1]]
    number = {sha: place for place, sha in enumerate(order, start=1)}
    print(
        f"\nPlanted: a step in `tokenise` (commit {STEP}), a ramp in `encode` (commits "
        f"{RAMP.start} to {RAMP.stop - 1}),\nand in `parse` a busy night that is none (commit "
        f"{OUTLIER})."
    )
    good = {one["case"] for one in trend["changes"]} == {"tokenise", "encode"}
    for one in trend["changes"]:
        before, after = number[one["sha_before"]], number[one["sha_after"]]
        good = good and one["worse"] and near(one["case"], before, after)
        print(f"Found:   {found_text(one, before, after)}")
    print(
        "That is what was planted. (Each within two commits of its place; a step that lies in the\n"
        "ramp is taken for it: noise hides which of the two it is, and how far it goes.)"
        if good
        else "That is NOT what was planted."
    )
    return good


def found_text(change: dict[str, Any], before: int, after: int) -> str:
    """Return what was found between the commits ``before`` and ``after``, in a line."""
    for_ramp = change["case"] == "encode" and change["kind"] == "step"
    return (
        f"{100 * (change['ratio'] - 1):+.1f} % in `{change['case']}` {change['metric']}, "
        f"a {change['kind']} between commits {before} and {after}{', for the ramp' * for_ramp}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
