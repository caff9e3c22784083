"""How far the memory of identical sides lies apart, and what a gate on it would say.

    python benchmarks/memory_spread.py [--rounds N] [--json FILE] [--from FILE]

Three metrics of six kinds of work, workers forked and fresh: one commit beside another that
differs by a comment, and beside one whose working memory is doubled. Then reports of twenty cases
are drawn from the rounds of identical sides and judged as a session judges them: each ``fail``
among them is false. ``--from`` prints the tables of a file again.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.observed import be_session, is_session, outputs_of

OVER_SETUP = "host_memory_over_setup"
METRICS = ("peak_host_memory", OVER_SETUP, "memory_growth")
MIB = 1 << 20
CONFIGURATION = """\
benchmarks = "benchmarks"
python_path = ["."]
rounds = {rounds}
max_rounds = {rounds}
budget = "1200s"
quiet.fork = {fork}
"""
LIBRARY = "TIMES = {times}  # {remark}\n"
WORKS = """\
import perfci
import torch
from library import TIMES

@perfci.benchmark
def tiny():
    x = torch.ones(8 * TIMES)
    return lambda: x + 1

@perfci.benchmark
def tensors_8_mib():
    x = torch.ones(TIMES << 21)
    return lambda: x * 2

@perfci.benchmark
def tensors_128_mib():
    x = torch.ones(16, 1 << 21)
    return lambda: [x * 2 for _ in range(TIMES)]

@perfci.benchmark
def model():
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).eval()
    return perfci.inference(model, torch.ones(64 * TIMES, 256))

@perfci.benchmark
def compiled():
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()).eval()
    return perfci.inference(model, torch.ones(64 * TIMES, 256), mode="default")

@perfci.benchmark
def python_lists():
    return lambda: [str(n) for n in range(50_000 * TIMES)]
"""
REPORTS, CASES = 500, 20


def build(folder: Path) -> None:
    """Make a repository with the branches main, same and doubled."""
    from demo import commit, git

    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "bench_memory.py").write_text(WORKS, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    for branch, times, remark in (("main", 1, "one"), ("same", 1, "another"), ("doubled", 2, "")):
        git(folder, "checkout", "--quiet", "-B", branch)
        library = LIBRARY.format(times=times, remark=remark)
        (folder / "library.py").write_text(library, encoding="utf-8")
        commit(folder, branch)


def session(folder: Path, head: str, rounds: int, *, fork: bool) -> list[dict[str, Any]]:
    """Run one compare of main with ``head`` in a process of its own; return its workers."""
    configuration = folder.parent / "perfci.toml"
    text = CONFIGURATION.format(rounds=rounds, fork=str(fork).lower())
    configuration.write_text(text, encoding="utf-8")
    outputs = outputs_of(
        __file__,
        folder,
        "",
        *("compare", "main", head, "--quiet", "--config", str(configuration)),
    )
    return [
        {
            "case": one.case,
            "side": one.side,
            "round": one.round,
            "values": {name: one.values[name] for name in METRICS if name in one.values},
        }
        for one in outputs
    ]


Pairs = dict[str, list[tuple[float, float]]]


def pairs_of(workers: Sequence[dict[str, Any]], metric: str) -> Pairs:
    """Return each case's rounds: base's and head's value of ``metric``."""
    found: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for one in workers:
        if metric in one["values"]:
            found[one["case"], one["round"]][one["side"]] = one["values"][metric]
    pairs: Pairs = defaultdict(list)
    for (case, _), sides in sorted(found.items()):
        if len(sides) == 2:
            pairs[case].append((sides["base"], sides["head"]))
    return pairs


def spread_table(sessions: Sequence[dict[str, Any]], metric: str, unit: float) -> Iterator[str]:
    """Yield a line for each session and case: what the sides have, and how far apart they are."""
    yield "| workers | head | case | base | rounds alike | median difference | largest | spread |"
    yield "|---|---|---|--:|--:|--:|--:|--:|"
    for one in sessions:
        for case, pairs in pairs_of(one["workers"], metric).items():
            differences = [(head - base) / unit for base, head in pairs]
            base = statistics.median(base for base, _ in pairs) / unit
            alike = sum(difference == 0.0 for difference in differences)
            spread = statistics.stdev(differences) if len(differences) > 1 else math.nan
            yield (
                f"| {one['workers_are']} | {one['head']} | {case} | {base:.2f} "
                f"| {alike} of {len(pairs)} | {statistics.median(differences):+.3f} "
                f"| {max(differences, key=abs):+.3f} | {spread:.3f} |"
            )


def false_alarms(sessions: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how many of the reports drawn from identical sides fail, or stay undecided."""
    from benchmarks.statistics.scoring import percent_with_interval

    yield "| workers | reports | failed, % | inconclusive, % | rounds a case |"
    yield "|---|--:|--:|--:|--:|"
    for one in sessions:
        if one["head"] != "same":
            continue
        random = Random(5)
        kinds = list(pairs_of(one["workers"], OVER_SETUP).values())
        ended = [_report(kinds, random) for _ in range(REPORTS)]
        failed = sum(status == "fail" for status, _ in ended)
        undecided = sum(status == "inconclusive" for status, _ in ended)
        rounds = sum(count for _, count in ended) / REPORTS / CASES
        yield (
            f"| {one['workers_are']} | {REPORTS} | {percent_with_interval(failed, REPORTS)} "
            f"| {percent_with_interval(undecided, REPORTS)} | {rounds:.1f} |"
        )


def _report(kinds: Sequence[Sequence[tuple[float, float]]], random: Random) -> tuple[str, int]:
    """Judge a report of twenty cases: the verdict, and how many rounds they took."""
    from perfci.model.case import Case
    from perfci.model.measuring import WorkerOutput
    from perfci.model.report import Comparison
    from perfci.verdict.case_comparisons import compare_case
    from perfci.verdict.decision import decide
    from perfci.verdict.policy import default_policy
    from perfci.verdict.row_status import adjust
    from perfci.verdict.stopping import undecided_metrics

    policy = default_policy()
    rows: list[Comparison] = []
    total = 0
    for number in range(CASES):
        name = f"case{number}"
        case = Case(name, name, {}, "bench_drawn.py", 1, "drawn", metrics=(OVER_SETUP,))
        kind = random.choice(kinds)
        drawn = [tuple(random.sample(pair, 2)) for pair in random.choices(kind, k=20)]
        base, head = (
            [
                WorkerOutput(name, side, index, {OVER_SETUP: pair[place]}, 100)
                for index, pair in enumerate(drawn, start=1)
            ]
            for place, side in enumerate(("base", "head"))
        )
        rounds = 5
        while True:
            found = compare_case(case, base[:rounds], head[:rounds], policy, paired=True)
            if rounds == 20 or not undecided_metrics(found, policy, CASES):
                break
            rounds += 1
        rows += found
        total += rounds
    return decide(adjust(rows, policy), (), policy).status, total


def main() -> int:
    """Measure each kind of session in turn, then print what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--from", dest="kept", type=Path)
    options = parser.parse_args()
    if options.kept:
        sessions = json.loads(options.kept.read_text(encoding="utf-8"))
    else:
        sessions = list(_measured(options.rounds))
        if options.json:
            text = json.dumps(sessions).replace('{"case"', '\n{"case"')
            options.json.write_text(text + "\n", encoding="utf-8")
    for metric, unit in zip(METRICS, (MIB, MIB, 1), strict=True):
        print(f"\n{metric}, {'MiB' if unit == MIB else 'bytes a call'}\n")
        print("\n".join(spread_table(sessions, metric, unit)))
    print(f"\nReports of {CASES} identical cases, {OVER_SETUP} alone\n")
    print("\n".join(false_alarms(sessions)))
    return 0


def _measured(rounds: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "memory"
        build(repository)
        for fork, head in ((True, "same"), (True, "doubled"), (False, "same")):
            workers = session(repository, head, rounds, fork=fork)
            yield {"workers_are": "forked" if fork else "fresh", "head": head, "workers": workers}


if __name__ == "__main__":
    if is_session():
        be_session()
    else:
        raise SystemExit(main())
