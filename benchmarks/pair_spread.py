"""How far rounds of one commit against itself lie apart, by two ways to read them.

    python benchmarks/pair_spread.py [--json FILE] [--rounds N] [--burst S]...

By each side's own p50 of the round, and by bursts that lay side by side
(``verdict/sampled_comparisons.py``), of the same rounds of the demo's four eager cases. Run it
quietly, and again beside other work.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.observed import be_session, is_session, outputs_of, pairs_of, show
from perfci.verdict.sampled_comparisons import pair_values

METRIC = "latency_p50"
CONFIGURATION = """\
benchmarks = "benchmarks"
python_path = ["."]
rounds = {rounds}
max_rounds = {rounds}
burst = {burst}
budget = "1200s"
"""


def session(repository: Path, folder: Path, rounds: int, burst: float) -> list[dict[str, Any]]:
    """Run one compare of main with itself; return its rounds."""
    configuration = folder / "perfci.toml"
    configuration.write_text(CONFIGURATION.format(rounds=rounds, burst=burst), encoding="utf-8")
    outputs = outputs_of(
        __file__,
        repository,
        "",
        *("compare", "main", "main", "--allow-same-commit", "--measure-same-code", "--quiet"),
        *("-k", "attention or mixer", "--config", str(configuration)),
    )
    found = []
    for case, pairs in pairs_of(outputs, [METRIC]).items():
        for base, head in pairs:
            own = base.values[METRIC], head.values[METRIC]
            before, after = pair_values(base, head, METRIC)
            found.append(
                {
                    "case": case,
                    "own": math.log(own[1] / own[0]),
                    "side_by_side": math.log(after / before),
                    "level": math.log(math.sqrt(own[0] * own[1])),
                }
            )
    return found


def spreads(rounds: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by case the standard deviations over rounds, as shares."""
    found = {}
    for case in sorted({one["case"] for one in rounds}):
        mine = [one for one in rounds if one["case"] == case]
        found[case] = {
            name: statistics.stdev(one[name] for one in mine)
            for name in ("own", "side_by_side", "level")
        } | {"rounds": len(mine), "level_s": math.exp(statistics.mean(o["level"] for o in mine))}
    return found


def main() -> int:
    """Measure each burst length in turn and print the spreads, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--burst", type=float, action="append")
    options = parser.parse_args()
    from demo import build

    found = []
    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        for burst in options.burst or (0.01,):
            load = os.getloadavg()[0]
            rounds = session(repository, Path(scratch), options.rounds, burst)
            found.append({"burst_s": burst, "load_before": load, "spread": spreads(rounds)})
    show(found, options.json)
    return 0


if __name__ == "__main__":
    if is_session():
        be_session()
    else:
        raise SystemExit(main())
