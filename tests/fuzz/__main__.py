"""Hand damaged documents to all that reads strangers' bytes: no traceback, no hang.

    python -m tests.fuzz [--inputs N] [--seed N] [--within S] [--target NAME]… [--keep]

Prints a row for each target. An input that found a fault is written to fuzz-faults/. ``--keep``
goes on where an earlier run ended, up to N inputs in all, and adds what came of them to those of
the table of attacks: so 100,000 may be several runs of ``--within`` seconds each.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tests import attacks
from tests.fuzz.campaign import Outcome, run
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Return 0 where nothing was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--within", type=float, default=float("inf"), help="s for each target")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    print("| target | inputs | believed | refused | faults | slowest |\n|---|--:|--:|--:|--:|--:|")
    found = 0
    for name in chosen.target or TARGETS:
        before = attacks.kept("fuzz").get(name, {}) if chosen.keep else {}
        first = int(before.get("tried", 0))
        outcome = run(name, chosen.inputs - first, chosen.seed, first=first, within_s=chosen.within)
        if chosen.keep:
            attacks.keep("fuzz", name, _together(before, outcome))
        print(
            f"| {name} | {outcome.inputs:,} | {outcome.believed:,} | {outcome.refused:,} "
            f"| {len(outcome.faults)} | {outcome.slowest_s * 1e3:.0f} ms |",
            flush=True,
        )
        for fault in outcome.faults:
            Path("fuzz-faults").mkdir(exist_ok=True)
            (Path("fuzz-faults") / f"{name}-{fault.number}").write_bytes(fault.content)
            print(f"  {name} {fault.number}: {fault.what}")
        found += len(outcome.faults)
    return 1 if found else 0


def _together(before: Mapping[str, float], outcome: Outcome) -> dict[str, float]:
    return {
        "tried": before.get("tried", 0) + outcome.inputs,
        "refused": before.get("refused", 0) + outcome.refused,
        "faults": before.get("faults", 0) + len(outcome.faults),
        "slowest_s": round(max(before.get("slowest_s", 0.0), outcome.slowest_s), 3),
    }


if __name__ == "__main__":
    raise SystemExit(main())
