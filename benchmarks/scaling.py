"""What more cores would give a suite of 100 cases, simulated: this machine has two.

    PYTHONPATH=. python benchmarks/scaling.py [--suites N]

How a machine is parted and how cases are shared out say the functions that ``--engine local``
calls. A session takes what ``many_cases.py`` measured, cases differ like a lognormal. Sessions
beside each other may spread pairs 1.25 times as much and still be allowed (``calibrate
--parallel``): then each case takes 1.25² as many rounds.
"""

from __future__ import annotations

import argparse
import math
from random import Random
from statistics import median

from perfci.measure.machine.cores import slots
from perfci.model.case import Case
from perfci.verdict.shards import split

SESSION_S, CASE_S = 2.6, 7.2
"""A session before its first case and after its last, and a case; s, by ``many_cases.py``."""
CASES, DIFFER, ALLOWED = 100, 0.5, 1.25


def wall_s(cores: int, rng: Random, *, known: bool, disturbed: float = 1.0) -> float:
    """Return how long the fullest shard takes; durations are ``known`` from a report, or alike."""
    cases = [Case(f"case{number:03}", "case", {}, "bench.py", 1, "") for number in range(CASES)]
    takes = {
        one.id: CASE_S * math.exp(rng.gauss(-(DIFFER**2) / 2.0, DIFFER)) * disturbed**2
        for one in cases
    }
    parts = len(slots([(core,) for core in range(cores)], (), workers=1, concurrent=0))
    shares = split(cases, parts, takes if known else {})
    return SESSION_S + max(sum(takes[one.id] for one in share) for share in shares)


def main() -> None:
    """Print a table: cores, sessions at once, and minutes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suites", type=int, default=1000)
    suites = range(parser.parse_args().suites)
    print("| cores | at once | min | durations unknown | as disturbed as allowed |")
    print("|--:|--:|--:|--:|--:|")
    for cores in (2, 4, 8, 16):
        parts = len(slots([(core,) for core in range(cores)], (), workers=1, concurrent=0))
        ways = ((True, 1.0), (False, 1.0), (True, ALLOWED if parts > 1 else 1.0))
        minutes = (
            median(wall_s(cores, Random(one), known=known, disturbed=by) for one in suites) / 60.0
            for known, by in ways
        )
        print(f"| {cores} | {parts} | " + " | ".join(f"{one:.1f}" for one in minutes) + " |")


if __name__ == "__main__":
    main()
