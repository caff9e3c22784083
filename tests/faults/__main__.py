"""Run commands on a disk that fails: full, over its quota, or with a bad sector.

    python -m tests.faults [--most N] [--seed N] [--scenario NAME]…

Prints a row for each: each change that the command makes to a file fails once, with each error.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.faults.campaign import Campaign, built
from tests.faults.scenarios import SCENARIOS


def main() -> int:
    """Return 0 where nothing was lost, doubled or hidden."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1_000_000, help="failures for each scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    chosen = parser.parse_args()
    print(
        "| command | changes to files | failures tried | refused | faults |\n|---|--:|--:|--:|--:|"
    )
    found = 0
    for name in chosen.scenario or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(SCENARIOS[name], built(Path(folder)), Path(folder) / "runs")
            outcome = campaign.run(chosen.most, chosen.seed)
        print(
            f"| {name} | {outcome.changes} | {outcome.tried} | {outcome.refused} "
            f"| {len(outcome.faults)} |",
            flush=True,
        )
        for fault in outcome.faults:
            print(f"  {fault.error} at {fault.at}: {fault.what}")
        found += len(outcome.faults)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
