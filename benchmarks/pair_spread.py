"""How far rounds of one commit against itself lie apart, by two ways to read them.

    python benchmarks/pair_spread.py [--rounds N] [--burst S]...

By each side's own p50 of the round, and by bursts that lay side by side
(``verdict/sampled_comparisons.py``), of the same rounds of the demo's four eager cases. Run it
quietly, and again beside other work.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from demo import build

from benchmarks.corpus.sessions import read_kept
from perfci.measure.kept_bursts import KeptSession
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


def session(repository: Path, folder: Path, rounds: int, burst: float) -> KeptSession:
    """Run one compare of main with itself; return its rounds."""
    configuration, kept = folder / "perfci.toml", folder / f"kept-{burst}"
    configuration.write_text(CONFIGURATION.format(rounds=rounds, burst=burst), encoding="utf-8")
    command = [sys.executable, "-m", "perfci", "compare", "main", "main", "--allow-same-commit"]
    command += ["--all", "--quiet", "-k", "attention or mixer"]
    command += ["--config", str(configuration), "--keep-bursts", str(kept)]
    subprocess.run(command, cwd=repository, check=False)
    (file,) = kept.iterdir()
    return read_kept(file)


def spreads(session: KeptSession) -> dict[str, dict[str, float]]:
    """Return by case the standard deviations of log ratios over rounds."""
    found = {}
    for at, case in enumerate(session.cases):
        own, beside = [], []
        for kept in session.rounds:
            if kept.case == at:
                base, head = (kept.workers[side].output for side in ("base", "head"))
                own.append(math.log(head.values[METRIC] / base.values[METRIC]))
                before, after = pair_values(base, head, METRIC)
                beside.append(math.log(after / before))
        found[case.id] = {
            "rounds": len(own),
            "own": statistics.stdev(own),
            "side_by_side": statistics.stdev(beside),
        }
    return found


def main() -> None:
    """Measure each burst length in turn and print the spreads, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--burst", type=float, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        for burst in options.burst or (0.01,):
            load = os.getloadavg()[0]
            kept = session(repository, Path(scratch), options.rounds, burst)
            print(json.dumps({"burst_s": burst, "load_before": load, "spread": spreads(kept)}))


if __name__ == "__main__":
    main()
