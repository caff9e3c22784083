"""How far rounds of one commit against itself lie apart, by two ways to read them.

    python benchmarks/pair_spread.py [--json FILE] [--rounds N] [--burst S]...

By each side's own p50 of the round, and by bursts that lay side by side (``verdict/pairs.py``),
of the same rounds of the demo's four eager cases. Run it quietly, and again beside other work.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
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
    """Run one compare of main with itself in a process of its own; return its rounds."""
    configuration = folder / "perfci.toml"
    configuration.write_text(CONFIGURATION.format(rounds=rounds, burst=burst), encoding="utf-8")
    done = subprocess.run(
        [
            *(
                sys.executable,
                __file__,
                "--session",
                "compare",
                "main",
                "main",
                "--same",
                "--quiet",
            ),
            *("-k", "attention or mixer", "--config", str(configuration)),
        ],
        cwd=repository,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return json.loads(done.stderr.strip().splitlines()[-1])


def run_session() -> None:
    """Be the session: perfci's own command line, whose rounds are noted as they come."""
    from perfci.model.worker import WorkerOutput
    from perfci.session.journal import Journal
    from perfci.verdict.pairs import pair_values

    waiting: dict[tuple[str, int], WorkerOutput] = {}
    rounds = []
    plain = Journal.result

    def noted(this: Journal, slug: str, result: Any, printed: str) -> None:
        plain(this, slug, result, printed)
        key = (result.case, result.round)
        if key not in waiting:
            waiting[key] = result
            return
        pair = sorted((waiting[key], result), key=lambda one: one.side)
        own = [one.values[METRIC] for one in pair]
        side_by_side = pair_values(*pair, METRIC)
        rounds.append(
            {
                "case": result.case,
                "own": math.log(own[1] / own[0]),
                "side_by_side": math.log(side_by_side[1] / side_by_side[0]),
                "level": math.log(math.sqrt(own[0] * own[1])),
            }
        )

    Journal.result = noted  # type: ignore[method-assign]
    from perfci.cli.main import main

    del sys.argv[1]
    try:
        main()
    finally:
        print(json.dumps(rounds), file=sys.stderr)


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
    text = json.dumps(found, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--session"]:
        run_session()
    raise SystemExit(main())
