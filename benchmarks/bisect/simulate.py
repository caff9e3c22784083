"""How often `perfci bisect` names the wrong commit, by simulation.

    python benchmarks/bisect/simulate.py [--searches N] [--write docs/results/bisect.md]

Drives `perfci.bisect` and the rule that ends a session; only the rounds are drawn. A search of a
cell has a seed of its own, so that the figures come out the same again.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perfci.app.bisect.answers import ends_threshold
from perfci.bisect.posterior import Answer
from perfci.bisect.search import Change, Question, Search, changes, next_question, unseen
from perfci.model.settings import DECIDING_ROUNDS, MeasureSettings
from perfci.stats.paired import paired_t
from perfci.stats.student import Resolution, two_sided_p
from perfci.verdict.policy import Policy
from perfci.verdict.stopping import is_decided

ALPHA = 0.01
LENGTHS = (16, 64, 256)
SIZES = (0.05, 0.10, 0.50)
SEVERAL = (
    (0.10, 0.20),
    (0.20, -0.10),
    (0.10, 0.10, 0.10),
    (0.20, -0.10, 0.20),
    (0.10, -0.10, 0.10),
    (0.10, 0.10, 0.10, 0.10),
)
UNBUILDABLE = 0.1
ALIKE = 0.02
"""Levels that differ by less are one: commits have something of their own."""
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
    """What one search came to. ``exact``: as narrow as the unbuildable commits allow.

    ``begun`` says that the ends were seen to differ, ``false`` that a change was named where there
    is none, ``said`` that all that are named are right, and that those which aren't cancel out
    between two commits of which the answer says that none between them was measured.
    """

    begun: bool
    right: bool
    said: bool
    false: bool
    exact: bool
    comparisons: int
    rounds: int
    held: bool


@dataclass(frozen=True, slots=True)
class Noise:
    """How a metric's rounds scatter, and ``layout``: what a commit's code has of its own.

    ``measured`` is the metric's own name, for the comparison of the ends. ``spread`` 0 is exact;
    ``df`` are those of Student's t, with which some rounds are far out.
    """

    metric: str
    name: str
    measured: str
    layout: float
    spread: float
    df: float = math.inf

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return what rounds have of their own."""
        if self.df < math.inf:
            return self.spread * math.sqrt(1.0 - 2.0 / self.df) * rng.standard_t(self.df, count)
        return rng.normal(0.0, self.spread, count)


LATENCY = tuple(
    Noise("latency", f"{one:.0%} normal", "latency_p50", 0.002, one) for one in (0.01, 0.02, 0.03)
)
HEAVY = Noise("latency", "2% heavy-tailed", "latency_p50", 0.002, 0.02, 3.0)
HOST = Noise("host memory", "0.05% normal", "peak_host_memory", 0.0005, 0.0005)
DEVICE = Noise("device memory", "exact", "peak_device_memory", 0.0, 0.0)
IMPORT = Noise("import", "3% normal", "import_time", 0.002, 0.03)


def planted(
    rng: np.random.Generator, length: int, sizes: tuple[float, ...], layout: float
) -> History:
    """Return a history with changes of these sizes, at places that are drawn."""
    culprits = tuple(sorted(int(one) + 1 for one in rng.choice(length, len(sizes), replace=False)))
    levels = rng.normal(0.0, layout, length + 1)
    levels[0] = 0.0
    for culprit, size in zip(culprits, sizes, strict=True):
        levels[culprit:] += math.log1p(size)
    broken = frozenset(int(one) for one in np.flatnonzero(rng.random(length + 1) < UNBUILDABLE))
    return History(tuple(levels), culprits, broken - {0, length})


def measured(history: History, asked: Question, noise: Noise, rng: np.random.Generator) -> Answer:
    """Return the answer of one session: rounds until the rule of every session ends it."""
    settings, levels = MeasureSettings(), history.levels
    change = levels[asked.position] - levels[asked.base]
    if noise.spread == 0.0:
        return Answer(asked.position, change, 0.0, 1.0, DECIDING_ROUNDS, asked.base)
    ratios = change + noise.draw(rng, settings.max_rounds)
    for rounds in range(DECIDING_ROUNDS, settings.max_rounds + 1):
        test = paired_t([0.0] * rounds, list(ratios[:rounds]), resolution=Resolution(1e-12))
        assert test.estimate is not None
        assert test.se is not None
        assert test.df is not None
        if is_decided(test.estimate, test.se, test.df, asked.margin, ALPHA):
            break
    return Answer(asked.position, test.estimate, test.se, test.df, rounds, asked.base)


def searched(
    history: History, noise: Noise, rng: np.random.Generator
) -> tuple[Search, tuple[Change, ...]]:
    """Search ``history`` as the command does, which ends where the ends don't differ."""
    length = len(history.levels) - 1
    margin = math.log1p(ends_threshold(Policy(), noise.measured))
    ends = measured(history, Question(length, margin), noise, rng)
    answers, skipped = [ends], list[int]()
    if ends.se and two_sided_p(ends.change / ends.se, ends.df) >= ALPHA:
        return Search(length), ()
    while question := next_question(search := Search(length, tuple(answers), tuple(skipped))):
        if question.position in history.unbuildable:
            skipped.append(question.position)
        else:
            answers.append(measured(history, question, noise, rng))
    return search, changes(search)


def told_apart(history: History) -> list[tuple[int, ...]]:
    """Return the culprits, those together between which no commit can be built."""
    groups: list[tuple[int, ...]] = []
    for one in history.culprits:
        if groups and history.unbuildable.issuperset(range(groups[-1][-1], one)):
            groups[-1] = (*groups[-1], one)
        else:
            groups.append((one,))
    return groups


def cancelling(
    search: Search, found: tuple[Change, ...], wanted: list[tuple[int, ...]], history: History
) -> bool:
    """Return whether those ``wanted`` that weren't ``found`` are said not to be seen."""
    if not found:
        return False
    inside = {
        one: [group for group in wanted if one.first <= group[0] and group[-1] <= one.last]
        for one in found
    }
    missing = [group for group in wanted if not any(group in one for one in inside.values())]
    levels = history.levels
    gaps = [one for one in unseen(search) if abs(levels[one[1]] - levels[one[0]]) < ALIKE]
    return all(len(one) == 1 for one in inside.values()) and all(
        any(before < group[0] and group[-1] <= after for before, after in gaps) for group in missing
    )


def outcome(history: History, noise: Noise, rng: np.random.Generator) -> Outcome:
    """Return how a search went."""
    search, found = searched(history, noise, rng)
    wanted = told_apart(history)
    right = len(found) == len(wanted) and all(
        one.first <= culprits[0] and culprits[-1] <= one.last
        for one, culprits in zip(found, wanted, strict=True)
    )
    broken = history.unbuildable
    exact = right and all(
        one.found and all(position in broken for position in range(one.first, one.last))
        for one in found
    )
    true = [history.levels[one.last] - history.levels[one.first - 1] for one in found]
    return Outcome(
        bool(search.answers),
        right,
        not right and cancelling(search, found, wanted, history),
        any(not any(one.first <= at <= one.last for at in history.culprits) for one in found),
        exact,
        len(search.answers),
        sum(one.rounds for one in search.answers),
        all(
            one.lo is not None and one.hi is not None and one.lo <= size <= one.hi
            for one, size in zip(found, true, strict=True)
        ),
    )


def cell(task: tuple[int, tuple[float, ...], Noise, int]) -> str:
    """Return a row of the table."""
    length, sizes, noise, count = task
    name = int.from_bytes(f"{noise.metric} {noise.name}".encode(), "big")
    rng = np.random.default_rng([length, *(round(1000 * one) + 1000 for one in sizes), name])
    outcomes = [
        outcome(planted(rng, length, sizes, noise.layout), noise, rng) for _ in range(count)
    ]
    comparisons = [one.comparisons for one in outcomes if one.begun]
    return (
        f"| {noise.metric} | {noise.name} | {length} "
        f"| {' and '.join(f'{one:+.0%}' for one in sizes)} "
        f"| {share(one.begun and not one.right and not one.said for one in outcomes)} "
        f"| {share(one.said for one in outcomes)} "
        f"| {share(one.false for one in outcomes)} "
        f"| {share(not one.begun for one in outcomes)} "
        f"| {share(one.right and not one.exact for one in outcomes)} "
        f"| {np.median(comparisons):.0f} | {np.quantile(comparisons, 0.95):.0f} "
        f"| {math.log2(length) + 3:.0f} "
        f"| {np.median([one.rounds for one in outcomes if one.begun]):.0f} "
        f"| {share(one.held for one in outcomes if one.right)} |"
    )


def share(those: Iterator[bool]) -> str:
    """Return the share of True as a percentage."""
    found = list(those)
    return f"{sum(found) / max(1, len(found)):.1%}"


HEAD = """\
| metric | noise of a pair | commits | change | wrong | said | falsely | not seen | undecided | comparisons, median | 95 % | log2 n + 3 | rounds, median | interval holds |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""  # noqa: E501


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tasks = [
        (length, (size,), noise, options.searches)
        for noise, length, size in product((*LATENCY, HOST, IMPORT), LENGTHS, SIZES)
    ]
    tasks += [(length, (SIZES[0],), DEVICE, options.searches) for length in LENGTHS]
    tasks += [(64, (size,), HEAVY, options.searches) for size in SIZES]
    tasks += [(64, (-0.10,), noise, options.searches) for noise in (LATENCY[1], HOST, IMPORT)]
    tasks += [(64, sizes, LATENCY[1], options.searches) for sizes in SEVERAL]
    tasks += [(64, SEVERAL[2], noise, options.searches) for noise in (HOST, DEVICE, IMPORT)]
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
