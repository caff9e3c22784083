"""Run commands on a disk that fails: full, over its quota, or with a bad sector.

    python -m tests.faults [--most N] [--seed N] [--scenario NAME]… [--keep]

Prints a row for each: each change that the command makes to a file fails once, with each error. Of
commands that measure, 24 changes spread over the session do at most. ``--keep`` puts the row into
docs/results/attacks.json.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.attacks import keep
from tests.faults.campaign import Campaign, Outcome, built
from tests.faults.measuring import MEASURING, MeasuringCampaign
from tests.faults.scenarios import SCENARIOS

_MEASURING = 24


def main() -> int:
    """Return 0 where nothing was lost, doubled or hidden."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1_000_000, help="failures for each scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenario", action="append", choices=[*SCENARIOS, *MEASURING])
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    print(
        "| command | changes to files | failures tried | refused | faults |\n|---|--:|--:|--:|--:|"
    )
    found = 0
    for name in chosen.scenario or [*SCENARIOS, *MEASURING]:
        with tempfile.TemporaryDirectory() as folder:
            outcome = _outcome(name, Path(folder), chosen.most, chosen.seed)
        tried, faults = outcome.tried, len(outcome.faults)
        print(
            f"| {name} | {outcome.changes} | {tried} | {outcome.refused} | {faults} |", flush=True
        )
        for fault in outcome.faults:
            print(f"  {fault.error} at {fault.at}: {fault.what}")
        found += faults
        if chosen.keep:
            counts = {"tried": tried, "refused": outcome.refused, "faults": faults}
            keep("disks", name, {"changes": outcome.changes, **counts})
    return 1 if found else 0


def _outcome(name: str, folder: Path, most: int, seed: int) -> Outcome:
    library = built(folder)
    if name in SCENARIOS:
        return Campaign(SCENARIOS[name], library, folder / "runs").run(most, seed)
    return MeasuringCampaign(name, library, folder / "runs").run(min(most, _MEASURING), seed)


if __name__ == "__main__":
    raise SystemExit(main())
