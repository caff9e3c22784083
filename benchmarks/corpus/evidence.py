"""Write docs/evidence.md: what can be replayed, and how long it takes to measure the rest again."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import left_out, peers
from benchmarks.corpus.replay import SUITE
from benchmarks.corpus.score import BEFORE_AND_AFTER, all_outcomes, tables
from benchmarks.corpus.sessions import DATA, scored_sessions
from benchmarks.statistics.scoring import markdown
from benchmarks.time_left_kept import opened

HERE = Path(__file__).resolve().parents[1]
PAGE = HERE.parent / "docs" / "evidence.md"
_TEXT = """\
# Evidence that you can replay

`make reproduce` writes this page from the [corpus](../benchmarks/corpus/README.md): {sessions}
recorded sessions, {rounds} rounds, replayed through the code that decides. A case counts as one of
a suite of {suite}.

A *false fail* fails a case that is worse by less than the threshold. A *false pass* passes a case
that is worse by the threshold or more, without a warning; both are *false*. Not all of a call
grows with the planted *share*, so a case can be worse by less than it. (`import_time` and
`latency_p95` only warn. A pass may leave them undecided, which counts as false here.) *Found* is
`regressed`. *Decided* is a verdict of pass or fail. *Covered* is the share of ratio intervals that
hold the truth, over all looks. *Rounds* and *s* are what a case takes to its verdict. Identical
cases count twice, the second time with their sides swapped. So few cases compare two versions of a
rule on the same data. They are too few for an error rate, which is
[simulated](statistics.md#in-short).

{tables}

## The last change of the rules

Before: what [statistics](statistics.md#when-measuring-stops) says of improvements, two speeds and
tails wasn't there. The columns are those above, of the eleven sessions that there were then.

{before_and_after}
## Other tools' rules on the same bursts

How often each calls head slower. Under a rule without a threshold, 1 % is rightly found.

{peers}

## Rules that were left out

{left_out}
## What has to be measured

Each [page of results](results/README.md) begins with its command. Where the raw results say how
long they took:

{measured}
"""


def page(folder: Path = DATA) -> str:
    """Return the page."""
    outcomes = all_outcomes(folder)
    return _TEXT.format(
        sessions=len(scored_sessions(folder)),
        rounds=sum(recorded.rounds for recorded in scored_sessions(folder)),
        suite=SUITE,
        tables=tables(("here", outcomes)),
        before_and_after=BEFORE_AND_AFTER.read_text(encoding="utf-8"),
        peers=peers.table(folder, outcomes),
        left_out=left_out.text(folder),
        measured=_measured(),
    )


def _measured() -> str:
    """Return what the raw results of measurements say of the time that they took."""
    simulated = json.loads((HERE / "statistics" / "results" / "simulation.json").read_text())
    lines = (HERE / "peers" / "results" / "run.jsonl").read_text().splitlines()
    peers_s = sum(json.loads(line).get("seconds", 0.0) for line in lines)
    sessions = [opened(path) for path in (HERE / "kept" / "time_left").glob("*.json.xz")]
    left_s = sum(session.ended - session.began for session in sessions)
    rows = (
        ("[false alarms](results/false-alarms.md)", "statistics/simulate.py", simulated["core_s"]),
        ("[other tools](results/peers.md)", "peers/run.py", peers_s),
        ("[the time left](results/time-left.md)", "time_left.py", left_s),
    )
    return markdown(
        ("figure", "program", "took, minutes"),
        [(figure, f"`benchmarks/{name}`", f"{took / 60.0:.0f}") for figure, name, took in rows],
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


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
