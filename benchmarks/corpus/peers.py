"""Other tools' rules on the recorded bursts: each is given what it would have measured itself.

One process of each side for a loop and for pytest-benchmark, two for asv, all for pyperf. None is
given the bursts' order: these tools measure one side after the other.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from math import comb
from pathlib import Path

from scipy.stats import mannwhitneyu, ttest_ind

from benchmarks.corpus.score import LATENCY, Outcome
from benchmarks.corpus.sessions import FEWEST, Recorded, planted_metric, scored_sessions
from benchmarks.peers.tools.samples import usual_recipe
from benchmarks.statistics.scoring import markdown
from perfci.measure.kept_bursts import KeptRound, KeptWorker, read_kept

Workers = Sequence[KeptWorker]
Answer = tuple[str, float, bool]
"""A rule's name, the planted share, and whether it calls head slower."""
_ASV_FACTOR, _ASV_LEVEL, _ASV_SAMPLE_S, _ASV_SAMPLES = 1.1, 0.002, 0.01, 5
_PYPERF_VALUES, _PYPERF_LEVEL = 3, 0.05


def mean_of_loop(base: Workers, head: Workers) -> bool:
    """A loop by hand in one process of each: the mean is 5 % larger."""
    return _mean(head[0]) > 1.05 * _mean(base[0])


def welch_of_calls(base: Workers, head: Workers) -> bool:
    """Welch's t on 100 calls of one process of each: p < 0.05 and d > 0.2."""
    return usual_recipe(base[0].calls_ns, head[0].calls_ns)


def pytest_benchmark(base: Workers, head: Workers) -> bool:
    """``--benchmark-compare-fail=median:5%``, of one process of each."""
    return head[0].output.quantiles[4] > 1.05 * base[0].output.quantiles[4]


def asv(base: Workers, head: Workers) -> bool:
    """``asv continuous``: factor 1.1 of medians, and Mann & Whitney's U below 0.002.

    Its samples are means of 10 ms, five of each of two processes (asv 0.6, ``_stats.py``). Where
    these are too few for the test, it compares intervals, and is taken to call them different.
    """
    before, after = _asv_samples(base), _asv_samples(head)
    if statistics.median(after) <= _ASV_FACTOR * statistics.median(before):
        return False
    smallest = 1.0 / comb(len(before) + len(after), len(after))
    if smallest >= _ASV_LEVEL:
        return True
    return bool(mannwhitneyu(before, after).pvalue < _ASV_LEVEL)


def _asv_samples(workers: Workers) -> list[float]:
    samples: list[float] = []
    for worker in workers[:2]:
        means, sizes = worker.means_s, _sizes(worker)
        group: list[float] = []
        spent, of_worker = 0.0, 0
        for mean, size in zip(means, sizes, strict=True):
            group.append(mean)
            spent += mean * size
            if spent >= _ASV_SAMPLE_S and of_worker < _ASV_SAMPLES:
                samples.append(statistics.fmean(group))
                group, spent, of_worker = [], 0.0, of_worker + 1
    return samples


def pyperf(base: Workers, head: Workers) -> bool:
    """``pyperf compare_to``: Student's t on three values of each process, at 95 %."""
    before, after = ([*chain.from_iterable(map(_thirds, side))] for side in (base, head))
    p = float(ttest_ind(before, after).pvalue)
    return p < _PYPERF_LEVEL and statistics.fmean(after) > statistics.fmean(before)


def _thirds(worker: KeptWorker) -> Iterator[float]:
    means = worker.means_s
    size = len(means) // _PYPERF_VALUES
    for at in range(_PYPERF_VALUES):
        yield statistics.fmean(means[at * size : (at + 1) * size])


def _mean(worker: KeptWorker) -> float:
    return statistics.fmean(worker.means_s)


def _sizes(worker: KeptWorker) -> list[int]:
    return [block.samples for block in worker.blocks for _ in range(block.bursts)]


RULES: dict[str, Callable[[Workers, Workers], bool]] = {
    "loop by hand, mean +5 %": mean_of_loop,
    "Welch's t on raw calls": welch_of_calls,
    "pytest-benchmark, median:5%": pytest_benchmark,
    "asv, factor 1.1": asv,
    "pyperf, significant": pyperf,
}


def answers_of(recorded: Recorded, folder: Path) -> list[Answer]:
    """Return each rule's answers on the cases of a session whose latency is planted or equal."""
    if recorded.library:
        return []
    session = read_kept(folder / recorded.file)
    swaps = (False,) if recorded.share else (False, True)
    answers: list[Answer] = []
    for at, case in enumerate(session.cases):
        if recorded.share and planted_metric(case.benchmark) != LATENCY:
            continue
        rounds = [kept for kept in session.rounds if kept.case == at]
        if len(rounds) >= FEWEST:
            # the first round compiles, and reads files for the first time
            for swapped in swaps:
                answers += _answers(rounds[1:], recorded.share, swapped=swapped)
    return answers


def _answers(rounds: Sequence[KeptRound], share: float, *, swapped: bool) -> Iterator[Answer]:
    sides = ("head", "base") if swapped else ("base", "head")
    base, head = ([kept.workers[side] for kept in rounds] for side in sides)
    for name, rule in RULES.items():
        yield name, share, rule(base, head)


def table(folder: Path, outcomes: Sequence[Outcome]) -> str:
    """Return the share of cases that each rule calls slower, perfci's own beside it."""
    with ProcessPoolExecutor() as pool:
        parts = pool.map(partial(answers_of, folder=folder), scored_sessions(folder))
        answers = list(chain.from_iterable(parts))
    answers += [
        (f"perfci, threshold {each.policy}", each.share, each.verdict == "fail")
        for each in outcomes
        if each.metric == LATENCY and each.share is not None
    ]
    shares = sorted({share for _, share, _ in answers})
    rows = []
    for name in dict.fromkeys(name for name, _, _ in answers):
        cells = [
            [slower for rule, s, slower in answers if (rule, s) == (name, of)] for of in shares
        ]
        rows.append((name, *(f"{sum(cell)} of {len(cell)}" for cell in cells)))
    titles = [f"{share:.0%} slower" if share else "identical" for share in shares]
    return markdown(("rule", *titles), rows)
