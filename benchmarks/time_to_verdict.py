"""A session's time, with and without the fork starter: ``docs/results/time-to-verdict.md``.

    python benchmarks/time_to_verdict.py [--json FILE] [--repetitions N] [--forked-only]

The demo's four eager cases, the commit against itself, decided at 2 %, in turn with workers that
are forked and workers that are fresh processes. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

CONFIGURATION = """\
benchmarks = "benchmarks"
python_path = ["."]
[metrics.latency_p50]
threshold = 0.02
[quiet]
fork = {fork}
"""
METRICS = ("latency_p50", "cold_start", "peak_host_memory")


class Stopwatch:
    """Sums the time spent in each step of a session, waiting for workers included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def wrap(self, owner: type, name: str, label: Callable[[tuple[Any, ...]], str]) -> None:
        """Time every call of ``owner.name``; ``label`` makes the step's name of its arguments."""
        plain = getattr(owner, name)

        def timed(this: Any, *arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return plain(this, *arguments, **options)
            finally:
                self.seconds[label(arguments)] += time.perf_counter() - started

        setattr(owner, name, timed)


def session(repository: Path, folder: Path, *, fork: bool) -> dict[str, Any]:
    """Run one compare in a process of its own, and return its steps and what it saw."""
    configuration, report = folder / "perfci.toml", folder / "report.json"
    configuration.write_text(CONFIGURATION.format(fork=str(fork).lower()), encoding="utf-8")
    import subprocess

    started = time.perf_counter()
    done = subprocess.run(
        [
            *(
                sys.executable,
                __file__,
                "--session",
                "compare",
                "main",
                "main",
                "--allow-same-commit",
                "--measure-same-code",
                "--quiet",
            ),
            *("-k", "attention or mixer"),
            *("--config", str(configuration), "--json", str(report)),
        ],
        cwd=repository,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - started
    seen = json.loads(report.read_text(encoding="utf-8"))
    return {
        "fork": fork,
        "wall_s": wall,
        "exit_code": done.returncode,
        "rounds": seen["timing"]["rounds"],
        "measured_s": seen["timing"]["measured_s"],
        "verdict": seen["verdict"]["status"],
        "steps": json.loads(done.stderr.strip().splitlines()[-1]),
        "rows": [
            {
                "case": row["case"],
                "metric": row["metric"],
                "status": row["status"],
                "base": row["base"]["center"],
                "ratio": row["ratio"],
                "half_width": math.log(row["ratio_hi"] / row["ratio_lo"]) / 2,
                "detectable": row["detectable"],
            }
            for row in seen["results"]
            if row["metric"] in METRICS and row["ratio_lo"]
        ],
    }


def run_session() -> None:
    """Be the session: perfci's own command line, with its steps timed."""
    from perfci.measure.executor import Starter
    from perfci.measure.workers import Worker

    watch = Stopwatch()
    names = {
        "discovery": "finding the benchmarks",
        "imported": "ancestors or starters: Python and imports",
        "ready": "workers: start or fork, set-up, first call, warm-up",
        "block": "bursts",
        "output": "afterwards: growth, accuracy",
    }
    watch.wrap(Worker, "expect", lambda arguments: names[arguments[0]])
    watch.wrap(Worker, "close", lambda _: "ending workers, ancestors and starters")
    watch.wrap(Starter, "close", lambda _: "of which ancestors and starters")
    from perfci.cli.main import main

    del sys.argv[1]
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    print(json.dumps(watch.seconds), file=sys.stderr)
    raise SystemExit(code)


def compared(sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return forked beside fresh: medians over sessions, and ratios of what they saw."""
    forked, fresh = ([one for one in sessions if one["fork"] is fork] for fork in (True, False))

    def median(group: list[dict[str, Any]], key: str) -> float:
        return statistics.median(one[key] for one in group)

    def seen(group: list[dict[str, Any]], metric: str, key: str) -> float:
        return statistics.geometric_mean(
            [row[key] for one in group for row in one["rows"] if row["metric"] == metric]
        )

    return {
        "wall_s": {"forked": median(forked, "wall_s"), "fresh": median(fresh, "wall_s")},
        "rounds": {"forked": median(forked, "rounds"), "fresh": median(fresh, "rounds")},
        "steps": {
            name: {
                label: statistics.median(one["steps"].get(name, 0.0) for one in group)
                for label, group in (("forked", forked), ("fresh", fresh))
            }
            for name in sorted({name for one in sessions for name in one["steps"]})
        },
        "forked_to_fresh": {
            metric: seen(forked, metric, "base") / seen(fresh, metric, "base") for metric in METRICS
        },
        "half_width": {
            metric: {
                "forked": seen(forked, metric, "half_width"),
                "fresh": seen(fresh, metric, "half_width"),
            }
            for metric in METRICS
        },
    }


def main() -> int:
    """Run the sessions in turn and print what they took, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--forked-only", action="store_true", help="leave fresh workers out")
    options = parser.parse_args()
    from demo import build

    sessions = []
    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        for number in range(options.repetitions):
            order = [True] if options.forked_only else [number % 2 == 0, number % 2 == 1]
            sessions += [session(repository, Path(scratch), fork=fork) for fork in order]
    summary = sessions if options.forked_only else compared(sessions)
    text = json.dumps({"summary": summary, "sessions": sessions}, indent=1)
    print(json.dumps(summary, indent=1))
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--session"]:
        run_session()
    raise SystemExit(main())
