"""How right the rules are on recorded sessions, and how long they take to say so.

    python -m benchmarks.corpus score [--rule CHECKOUT] [--kind KIND]

Each recorded case is replayed at the default thresholds, and with 2 % for the median latency;
identical sides a second time, with the sides swapped.
``--rule`` replays the same data by another checkout's code, in processes of its own, and prints
both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import perfci
from benchmarks.corpus.replay import Replay, replayed
from benchmarks.corpus.sessions import (
    DATA,
    FEWEST,
    Recorded,
    planted_metric,
    read_kept,
    scored_sessions,
    true_share,
)
from benchmarks.statistics.scoring import markdown, percent
from perfci.measure.kept_bursts import KeptSession
from perfci.metrics import METRICS
from perfci.model.report import Comparison
from perfci.verdict.policy import Policy

ROOT = Path(__file__).resolve().parents[2]
LATENCY = "latency_p50"
_BY_ANOTHER = """\
import importlib.util, sys
other, ours = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, other)
import perfci
sys.path[0] = ours
spec = importlib.util.spec_from_file_location(
    "benchmarks.corpus.replay", f"{other}/benchmarks/corpus/replay.py"
)
replay = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replay)
from benchmarks.corpus.score import main
main(sys.argv[1:])
"""
"""Another checkout's perfci, and its ``replay.py``, which knows its functions; the rest is ours."""
POLICIES = {
    "5 %": Policy(),
    "2 %": Policy(metrics={LATENCY: replace(METRICS[LATENCY], threshold=0.02)}),
}
_LOADS = ((2.0, "below 2"), (4.0, "2 to 4"), (6.0, "4 to 6"), (math.inf, "6 and more"))
_PRECISE = {LATENCY, "latency_p95"}
"""Metrics whose true change is known well enough to ask whether an interval holds it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided of one replayed case, beside the truth. ``load`` is the machine's meanwhile.

    ``metric`` is the metric that the planted units make worse: ``share`` more units, worse by
    ``truth``. ``status`` and ``threshold`` are its row's; ``p95`` is P95's status. ``covered`` says
    whether its interval holds the truth, None where it isn't known or has none.
    """

    kind: str
    load: str
    share: float
    truth: float
    policy: str
    metric: str
    threshold: float
    verdict: str
    status: str
    covered: bool | None
    rounds: int
    seconds: float
    p95: str = ""

    @property
    def is_false_fail(self) -> bool:
        """Return whether it fails although nothing is worse by its threshold."""
        return self.truth < self.threshold and self.verdict == "fail"

    @property
    def is_false_pass(self) -> bool:
        """Return whether it passes without a word although it is worse by its threshold."""
        is_late = self.truth >= self.threshold
        return is_late and self.verdict == "pass" and self.status != "regressed"


def load_of(session: KeptSession, case: int) -> str:
    """Return the range that the machine's mean load was in while a case was measured."""
    load = statistics.fmean(kept.load for kept in session.rounds if kept.case == case)
    return next((name for most, name in _LOADS if load < most), _LOADS[-1][1])


def outcomes_of(recorded: Recorded, folder: Path, kind: str) -> list[Outcome]:
    """Return the outcomes of one session's cases under each policy.

    A case with few rounds is left out.
    """
    session = read_kept(folder / recorded.file)
    counts = Counter(kept.case for kept in session.rounds)
    return [
        outcome
        for at, case in enumerate(session.cases)
        if kind in {"", case.benchmark} and counts[at] >= FEWEST
        for name, policy in POLICIES.items()
        if name == "5 %" or not recorded.share or planted_metric(case.benchmark) == LATENCY
        for swapped in ((False,) if recorded.share else (False, True))
        for outcome in _outcome(
            replayed(session, at, policy, swapped=swapped),
            recorded.share,
            case.benchmark,
            load_of(session, at),
            name,
        )
    ]


def _outcome(replay: Replay, share: float, kind: str, load: str, policy: str) -> Iterator[Outcome]:
    metric = planted_metric(kind) if share else LATENCY
    row = next((row for row in replay.rows if row.metric == metric), None)
    if row is None:
        return
    covered = None
    truth = true_share(kind, share)
    known = metric in _PRECISE
    if known and row.ratio_lo is not None and row.ratio_hi is not None:
        covered = row.ratio_lo <= 1.0 + truth <= row.ratio_hi
    yield Outcome(
        kind,
        load,
        share,
        truth,
        policy,
        metric,
        _threshold(row),
        replay.verdict,
        row.status,
        covered,
        replay.rounds,
        replay.seconds,
        next((row.status for row in replay.rows if row.metric == "latency_p95"), ""),
    )


def _threshold(row: Comparison) -> float:
    """Return the row's threshold as a share of base; memory's is an amount."""
    if row.difference is None or row.base is None or not row.base.center:
        return row.threshold
    return row.threshold / row.base.center


def all_outcomes(folder: Path, kind: str = "", most: int | None = None) -> list[Outcome]:
    """Return the outcomes of all sessions, or of the first ``most`` of them."""
    sessions = scored_sessions(folder)[:most]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(partial(outcomes_of, folder=folder, kind=kind), sessions)
        return [outcome for part in parts for outcome in part]


def outcomes_by(checkout: Path, folder: Path, kind: str) -> list[Outcome]:
    """Return the outcomes by the code of another checkout, in processes of its own."""
    words = ["--json", "--data", str(folder), *(["--kind", kind] if kind else [])]
    done = subprocess.run(
        [sys.executable, "-c", _BY_ANOTHER, str(checkout), str(ROOT), *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    if not Path(answer["perfci"]).is_relative_to(checkout):
        raise SystemExit(f"{answer['perfci']} decided, which is not of {checkout}")
    return [Outcome(**plain) for plain in answer["outcomes"]]


Rule = tuple[str, Sequence[Outcome]]
"""A version of perfci, and what it decided."""
By = Callable[[Outcome], tuple[str, ...]]
Column = Callable[[Sequence[Outcome]], object]


def _mean(name: str) -> Column:
    return lambda outcomes: statistics.fmean(getattr(each, name) for each in outcomes)


def _covered(outcomes: Sequence[Outcome]) -> str:
    known = [each.covered for each in outcomes if each.covered is not None]
    return percent(sum(known), len(known), 0)


def _share(is_so: Callable[[Outcome], bool]) -> Column:
    return lambda outcomes: percent(sum(map(is_so, outcomes)), len(outcomes), 0)


_COMMON: dict[str, Column] = {
    "decided, %": _share(lambda each: each.verdict in {"pass", "fail"}),
    "covered, %": _covered,
    "rounds": _mean("rounds"),
    "s": _mean("seconds"),
}
_SAME: dict[str, Column] = {
    "cases": len,
    "false fails": lambda outcomes: sum(each.is_false_fail for each in outcomes),
    "look slower": lambda outcomes: sum(each.verdict == "looks slower" for each in outcomes),
    **_COMMON,
    "P95 decided, %": _share(lambda each: each.p95 not in {"", "inconclusive"}),
}
_WORSE: dict[str, Column] = {
    "cases": len,
    "found, %": _share(lambda each: each.status == "regressed"),
    "false": lambda outcomes: sum(each.is_false_fail or each.is_false_pass for each in outcomes),
    **_COMMON,
}


def _chosen(rules: Sequence[Rule], is_so: Callable[[float], bool]) -> list[Rule]:
    """Return the rules with those of their outcomes whose planted share is so."""
    return [(name, [each for each in outcomes if is_so(each.share)]) for name, outcomes in rules]


def tables(*rules: Rule) -> str:
    """Return all tables, with a row for each rule: identical sides, then what was planted."""
    same, worse = _chosen(rules, lambda share: share == 0.0), _chosen(rules, bool)
    parts = (
        ("Identical sides, by kind of work", lambda each: (each.kind,), ("kind",), _SAME, same),
        ("Identical sides, by load", lambda each: (each.load,), ("load",), _SAME, same),
        (
            "Planted, by metric and share",
            lambda each: (each.metric, f"{each.share:4.0%}"),
            ("metric", "share"),
            _WORSE,
            worse,
        ),
    )
    return "\n\n".join(
        f"**{title}**\n\n{_table(by, names, columns, members)}"
        for title, by, names, columns, members in parts
        if any(outcomes for _, outcomes in members)
    )


def _table(by: By, names: Sequence[str], columns: dict[str, Column], rules: Sequence[Rule]) -> str:
    """Return a table of the outcomes in groups and of all, with all columns for each policy."""
    keys = sorted({by(each) for _, outcomes in rules for each in outcomes})
    whole = ("all", *[""] * (len(names) - 1))
    ruled = len(rules) > 1
    rows = [
        (*key, *([name] if ruled else []), *_cells(columns, members))
        for key in (*keys, whole)
        for name, outcomes in rules
        for members in [[each for each in outcomes if key in (by(each), whole)]]
    ]
    titles = [f"{title} ({policy})" for policy in POLICIES for title in columns]
    return markdown((*names, *(["rule"] if ruled else []), *titles), rows)


def _cells(columns: dict[str, Column], outcomes: Sequence[Outcome]) -> Iterator[object]:
    for policy in POLICIES:
        members = [each for each in outcomes if each.policy == policy]
        for column in columns.values():
            yield column(members) if members else "–"


def main(words: Sequence[str]) -> int:
    """Score what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus score")
    parser.add_argument("--kind", default="")
    parser.add_argument("--rule", type=Path, action="append", default=[], metavar="CHECKOUT")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", action="store_true", help="print the outcomes themselves")
    given = parser.parse_args(words)
    began = time.monotonic()
    own = all_outcomes(given.data, given.kind)
    if given.json:
        print(json.dumps({"perfci": perfci.__file__, "outcomes": [asdict(each) for each in own]}))
        return 0
    others = [
        (rule.name, outcomes_by(rule.resolve(), given.data.resolve(), given.kind))
        for rule in given.rule
    ]
    print(tables(("here", own), *others))
    print(f"\n{len(own)} replays by each rule, in {time.monotonic() - began:.0f} s")
    return 0
