"""How often `perfci bisect` names the wrong commit, by simulation.

    python benchmarks/bisect/simulate.py [--searches N] [--write docs/results/bisect.md]

Drives `perfci.bisect` and the rule that ends a session; only the rounds are drawn. A search of a
cell has a seed of its own, so that the figures come out the same again.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perfci.bisect.posterior import Answer
from perfci.bisect.search import Change, Question, Search, changes, next_question
from perfci.model.settings import DECIDING_ROUNDS, MeasureSettings
from perfci.stats.paired import paired_t
from perfci.verdict.stopping import is_decided

THRESHOLD = 0.05
"""Of the comparison of the ends: that of latency."""
ALPHA = 0.01
LENGTHS = (16, 64, 256)
SIZES = (0.05, 0.10, 0.50)
NOISES = (0.01, 0.02, 0.03)
LAYOUT = 0.002
"""What a commit's code has of its own, that no round averages away."""
UNBUILDABLE = 0.1
START = "<!-- simulated: bisect -->"
END = "<!-- end -->"


@dataclass(frozen=True, slots=True)
class History:
    """Levels by position, 0 for good; ``culprits`` are where they change."""

    levels: tuple[float, ...]
    culprits: tuple[int, ...]
    unbuildable: frozenset[int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search came to. ``exact``: as narrow as the unbuildable commits allow."""

    right: bool
    exact: bool
    comparisons: int
    rounds: int
    held: bool


Draw = Callable[[int], np.ndarray]


def planted(rng: np.random.Generator, length: int, sizes: tuple[float, ...]) -> History:
    """Return a history with changes of these sizes, at places that are drawn."""
    culprits = tuple(sorted(int(one) + 1 for one in rng.choice(length, len(sizes), replace=False)))
    levels = rng.normal(0.0, LAYOUT, length + 1)
    levels[0] = 0.0
    for culprit, size in zip(culprits, sizes, strict=True):
        levels[culprit:] += math.log1p(size)
    broken = frozenset(int(one) for one in np.flatnonzero(rng.random(length + 1) < UNBUILDABLE))
    return History(tuple(levels), culprits, broken - {0, length})


def measured(history: History, asked: Question, draw: Draw) -> Answer:
    """Return the answer of one session: rounds until the rule of every session ends it."""
    settings, levels = MeasureSettings(), history.levels
    ratios = levels[asked.position] - levels[asked.base] + draw(settings.max_rounds)
    for rounds in range(DECIDING_ROUNDS, settings.max_rounds + 1):
        test = paired_t([0.0] * rounds, list(ratios[:rounds]), resolution=1e-12)
        assert test.estimate is not None
        assert test.se is not None
        assert test.df is not None
        if is_decided(test.estimate, test.se, test.df, asked.margin, ALPHA):
            break
    return Answer(asked.position, test.estimate, test.se, test.df, rounds, asked.base)


def searched(history: History, draw: Draw) -> tuple[Search, tuple[Change, ...]]:
    """Search ``history`` as the command does."""
    length = len(history.levels) - 1
    answers = [measured(history, Question(length, math.log1p(THRESHOLD)), draw)]
    skipped: list[int] = []
    while question := next_question(search := Search(length, tuple(answers), tuple(skipped))):
        if question.position in history.unbuildable:
            skipped.append(question.position)
        else:
            answers.append(measured(history, question, draw))
    return search, changes(search)


def outcome(history: History, draw: Draw) -> Outcome:
    """Return how a search went."""
    search, found = searched(history, draw)
    right = len(found) == len(history.culprits) and all(
        one.first <= culprit <= one.last
        for one, culprit in zip(found, history.culprits, strict=True)
    )
    broken = history.unbuildable
    exact = right and all(
        one.found and all(position in broken for position in range(one.first, one.last))
        for one in found
    )
    true = [history.levels[one.last] - history.levels[one.first - 1] for one in found]
    return Outcome(
        right,
        exact,
        len(search.answers),
        sum(one.rounds for one in search.answers),
        all(
            one.lo is not None and one.hi is not None and one.lo <= size <= one.hi
            for one, size in zip(found, true, strict=True)
        ),
    )


def gaussian(rng: np.random.Generator, noise: float) -> Draw:
    return lambda count: rng.normal(0.0, noise, count)


def heavy(rng: np.random.Generator, noise: float) -> Draw:
    """Student's t with three degrees of freedom: some rounds are far out."""
    return lambda count: noise / math.sqrt(3.0) * rng.standard_t(3, count)


def cell(task: tuple[int, tuple[float, ...], float, str, int]) -> str:
    """Return a row of the table."""
    length, sizes, noise, kind, count = task
    seed = [length, *(round(1000 * one) + 1000 for one in sizes), round(1000 * noise), len(kind)]
    rng = np.random.default_rng(seed)
    draw = gaussian(rng, noise) if kind == "normal" else heavy(rng, noise)
    outcomes = [outcome(planted(rng, length, sizes), draw) for _ in range(count)]
    comparisons = [one.comparisons for one in outcomes]
    return (
        f"| {length} | {' and '.join(f'{one:+.0%}' for one in sizes)} | {noise:.0%} {kind} "
        f"| {share(not one.right for one in outcomes)} "
        f"| {share(one.right and not one.exact for one in outcomes)} "
        f"| {np.median(comparisons):.0f} | {np.quantile(comparisons, 0.95):.0f} "
        f"| {math.log2(length) + 3:.0f} "
        f"| {np.median([one.rounds for one in outcomes]):.0f} "
        f"| {share(one.held for one in outcomes if one.right)} |"
    )


def share(those: Iterator[bool]) -> str:
    """Return the share of True as a percentage."""
    found = list(those)
    return f"{sum(found) / max(1, len(found)):.1%}"


HEAD = """\
| commits | change | noise of a pair | wrong | undecided | comparisons, median | 95 % | log2 n + 3 | rounds, median | interval holds |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""  # noqa: E501


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tasks = [
        (length, (size,), noise, "normal", options.searches)
        for length, size, noise in product(LENGTHS, SIZES, NOISES)
    ]
    tasks += [(64, (size,), 0.02, "heavy-tailed", options.searches) for size in SIZES]
    tasks += [(64, (-0.10,), 0.02, "normal", options.searches)]
    tasks += [
        (64, sizes, 0.02, "normal", options.searches)
        for sizes in ((0.10, 0.20), (0.20, -0.10), (0.10, 0.10, 0.10))
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        rows = []
        for row in pool.map(cell, tasks):
            print(row, flush=True)
            rows.append(row)
    if options.write:
        before, _, rest = options.write.read_text(encoding="utf-8").partition(START)
        after = rest.partition(END)[2]
        table = HEAD + "\n".join(rows)
        options.write.write_text(f"{before}{START}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
