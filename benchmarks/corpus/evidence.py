"""Write docs/evidence.md: what can be replayed, and how long it takes to measure the rest again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import peers
from benchmarks.corpus.score import all_outcomes, tables
from benchmarks.corpus.sessions import DATA, recorded_sessions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence.md"
MEASURED = (
    ("false alarms, coverage, power", "statistics/simulate.py", "20 min of a core", "false-alarms"),
    ("other tools", "peers/run.py --repetitions 1", "1 h", "peers"),
    ("bursts side by side", "pair_spread.py --rounds 12", "10 min", "pairs"),
    ("memory of identical workers", "memory_spread.py --rounds 8", "10 min", "memory"),
    ("time to the verdict", "time_to_verdict.py --repetitions 1", "15 min", "time-to-verdict"),
    ("why, against what was planted", "planted.py first", "20 min", "why"),
    ("the search for a commit", "bisect/simulate.py --processes 2", "10 min", "bisect"),
)
"""What is measured, by which program, how long that takes, and the page of its result."""
_TEXT = """\
# Evidence that you can replay

`make reproduce` writes this page from the [corpus](../benchmarks/corpus/README.md): {sessions}
recorded sessions, {rounds} rounds, replayed through the code that decides. A case counts as one of
a suite of {suite}.

A *false fail* fails a case whose planted share is below the threshold. A *false pass* passes one
at the threshold or above without a warning; both are *false*. *Found* is `regressed`. *Decided*
is a verdict of pass or fail. *Covered* is the share of ratio intervals that hold the truth, over
all looks. *Rounds* and *s* are what a case takes to its verdict.

{tables}

## Other tools' rules on the same bursts

How often each calls head slower. Under a rule without a threshold, 1 % is rightly found.

{peers}

## What has to be measured

| figure | `python benchmarks/…` | takes about | result |
|---|---|---|---|
{measured}
"""


def page(folder: Path = DATA) -> str:
    """Return the page."""
    outcomes = all_outcomes(folder)
    return _TEXT.format(
        sessions=len(recorded_sessions(folder)),
        rounds=sum(recorded.rounds for recorded in recorded_sessions(folder)),
        suite=20,
        tables=tables(("here", outcomes)),
        peers=peers.table(folder, outcomes),
        measured="\n".join(
            f"| {figure} | `{command}` | {took} | [{result}](results/{result}.md) |"
            for figure, command, took, result in MEASURED
        ),
    )


def main(words: Sequence[str]) -> int:
    """Write the page to where the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus reproduce")
    parser.add_argument("page", nargs="?", type=Path, default=PAGE)
    given = parser.parse_args(words)
    began = time.monotonic()
    given.page.write_text(page(), encoding="utf-8")
    print(f"{given.page.name}: replayed in {time.monotonic() - began:.0f} s")
    return 0
