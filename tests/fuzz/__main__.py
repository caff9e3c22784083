"""Hand damaged documents to all that reads strangers' bytes: no traceback, no hang.

    python -m tests.fuzz [--inputs N] [--seed N] [--target NAME]…

Prints a row for each target. An input that found a fault is written to fuzz-faults/.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.fuzz.campaign import run
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Return 0 where nothing was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=TARGETS)
    chosen = parser.parse_args()
    print("| target | inputs | believed | refused | faults | slowest |\n|---|--:|--:|--:|--:|--:|")
    found = 0
    for name in chosen.target or TARGETS:
        outcome = run(name, chosen.inputs, chosen.seed)
        print(
            f"| {name} | {chosen.inputs:,} | {outcome.believed:,} | {outcome.refused:,} "
            f"| {len(outcome.faults)} | {outcome.slowest_s * 1e3:.0f} ms |",
            flush=True,
        )
        for fault in outcome.faults:
            Path("fuzz-faults").mkdir(exist_ok=True)
            (Path("fuzz-faults") / f"{name}-{fault.number}").write_bytes(fault.content)
            print(f"  {name} {fault.number}: {fault.what}")
        found += len(outcome.faults)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
