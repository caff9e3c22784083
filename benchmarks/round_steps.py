"""Where the wall time of a small comparison goes, by step and by how many ancestors are prepared.

    python benchmarks/round_steps.py [--repetitions N] [--json FILE]

The small eager benchmark of ``verdict_cost.py``, unchanged and 8 % slower, in sessions that take
turns: with no ancestor prepared while a pair measures, with one, and with two. Medians in s;
nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.observed import is_session, show  # noqa: E402
from benchmarks.time_to_verdict import Stopwatch  # noqa: E402
from benchmarks.verdict_cost import small  # noqa: E402

COMPARED = {"unchanged": ("same", "unchanged"), "8 % slower": ("unchanged", "slower")}
AHEAD = (0, 1, 2)


def run_session(ahead: int) -> None:
    """Be perfci's own command line with its steps timed, ``ahead`` ancestors prepared."""
    from perfci.cli.main import main
    from perfci.measure import session as a_session
    from perfci.measure.round import RoundSide, _RoundWorkers
    from perfci.measure.starters import Starters
    from perfci.measure.workers import Worker

    a_session._ANCESTORS_AHEAD = ahead
    watch = Stopwatch()
    watch.wrap(Worker, "expect", lambda said: "finding" if said[0] == "discovery" else "messages")
    waited: list[None] = []

    def ancestor(_: tuple[Any, ...]) -> str:
        waited.append(None)
        return "first ancestor" if len(waited) == 1 else "later ancestors"

    watch.wrap(Starters, "_ancestor_of", ancestor)
    watch.wrap(_RoundWorkers, "_start", lambda _: "fork, set-up, warm-up")
    watch.wrap(_RoundWorkers, "_blocks", lambda _: "blocks")
    watch.wrap(RoundSide, "take_output", lambda _: "growth, accuracy, memory")
    watch.wrap(RoundSide, "end", lambda _: "ending workers")
    del sys.argv[1:3]
    try:
        main()
    finally:
        print(json.dumps(watch.seconds), file=sys.stderr)


def steps(repository: Path, ahead: int, revisions: tuple[str, str]) -> dict[str, float]:
    """Run one comparison in a process of its own; return its steps, the rest and its rounds."""
    report = repository / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, __file__, "--session", str(ahead), "compare", *revisions),
            *("--quiet", "--json", str(report)),
        ],
        cwd=repository,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not report.is_file():
        raise SystemExit(done.stderr)
    timing = json.loads(report.read_text(encoding="utf-8"))["timing"]
    report.unlink()
    found = json.loads(done.stderr.strip().splitlines()[-1])
    del found["messages"]  # of all steps, and of what is asked when all is measured
    rest = timing["wall_s"] - sum(found.values())
    return {**found, "rest": rest, "wall": timing["wall_s"], "rounds": timing["rounds"]} | {
        "recorded": timing["measured_s"]
    }


def main() -> int:
    """Run the sessions in turn and print the medians of their steps, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repetitions", type=int, default=1)
    options = parser.parse_args()
    taken: dict[tuple[str, int], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        repository = small(Path(scratch) / "small")
        for number in range(options.repetitions):
            for ahead in AHEAD if number % 2 == 0 else reversed(AHEAD):
                for what, revisions in COMPARED.items():
                    taken.setdefault((what, ahead), []).append(steps(repository, ahead, revisions))
    medians = {
        f"{what}, {ahead} ahead": {
            step: round(statistics.median(one.get(step, 0.0) for one in sessions), 2)
            for step in sessions[0]
        }
        for (what, ahead), sessions in sorted(taken.items())
    }
    show(medians, options.json)
    return 0


if __name__ == "__main__":
    if is_session():
        run_session(int(sys.argv[2]))
    else:
        raise SystemExit(main())
