"""How long a round should be: the spread of a pair's log ratio in A/A by the bursts that count.

    python benchmarks/round_time.py [--json FILE] [--rounds N] [--round-time S]

Rounds of the demo's four eager cases against themselves, each of ``S`` s of bursts a side, read by
all of its blocks and by the first of them: the same pairs of processes say what each length sees.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.observed import be_session, is_session, outputs_of, pairs_of, show
from perfci.model.measuring import WorkerOutput

METRIC = "latency_p50"
SHARES = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
CONFIGURATION = """\
benchmarks = "benchmarks"
python_path = ["."]
rounds = {rounds}
max_rounds = {rounds}
round_time = {round_time}
budget = "1200s"
"""


def run_session() -> None:
    """Be a session whose pairs keep what the first blocks alone say."""
    from perfci.measure import round as a_round
    from perfci.verdict.sampled_comparisons import side_by_side as whole

    def by_share(
        outputs: Sequence[WorkerOutput], blocks: Sequence[int]
    ) -> tuple[WorkerOutput, ...]:
        found = whole(outputs, blocks)
        for share in SHARES:
            first = tuple(blocks)[: max(1, round(len(blocks) * share))]
            cut = [
                replace(one, bursts={METRIC: one.bursts[METRIC][: sum(first)]}) for one in outputs
            ]
            logs = [one.beside.get(METRIC, math.nan) for one in whole(cut, first)]
            found = tuple(
                replace(one, beside={**one.beside, str(share): log})
                for one, log in zip(found, logs, strict=True)
            )
        return found

    vars(a_round)["side_by_side"] = by_share
    be_session()


def spreads(outputs: Sequence[WorkerOutput]) -> dict[str, dict[str, float]]:
    """Return the standard deviation of a pair in %, by case and share of its bursts."""
    found = {}
    for case, pairs in pairs_of(outputs, [METRIC]).items():
        found[case] = {
            str(share): round(
                statistics.stdev([100.0 * head.beside[str(share)] for _, head in pairs]), 3
            )
            for share in SHARES
        }
    return found


def main() -> int:
    """Measure, and print spreads by case, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--round-time", type=float, default=0.4)
    options = parser.parse_args()
    from demo import build

    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        configuration = Path(scratch) / "perfci.toml"
        text = CONFIGURATION.format(rounds=options.rounds, round_time=options.round_time)
        configuration.write_text(text, encoding="utf-8")
        load = os.getloadavg()[0]
        outputs = outputs_of(
            __file__,
            repository,
            "",
            *("compare", "main", "main", "--allow-same-commit", "--measure-same-code", "--quiet"),
            *("-k", "attention or mixer", "--config", str(configuration)),
        )
    show({"load_before": load, "spread": spreads(outputs)}, options.json)
    return 0


if __name__ == "__main__":
    if is_session():
        run_session()
    else:
        raise SystemExit(main())
