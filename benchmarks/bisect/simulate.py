"""How often a probability that `perfci bisect` states is right, by simulation.

    python benchmarks/bisect/simulate.py [--searches N] [--write docs/results/bisect.md]

Drives `perfci.bisect` and the rule that ends a session; only the rounds are drawn. A search of a
cell has a seed of its own, so that the figures come out the same again.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes are one for each core

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import LevelChange, Question, Search, changes, next_question, unseen
from perfci.commands.bisect_driver import ends_threshold
from perfci.model.measuring import DECIDING_ROUNDS, MeasureSettings
from perfci.stats.t_tests import Resolution, paired_t, two_sided_p
from perfci.verdict.policy import Policy
from perfci.verdict.stopping import is_decided

ALPHA = 0.01
UNBUILDABLE = 0.1
ALIKE = 0.02
"""Levels that differ by less cancel out."""
START = "<!-- simulated: bisect -->"
END = "<!-- end -->"


@dataclass(frozen=True, slots=True)
class Noise:
    """How a metric's answers scatter.

    ``layout`` is the standard deviation of commits, which stays with a commit; ``session`` that of
    comparisons; ``spread`` that of rounds, 0 for what is exact. ``df`` are those of Student's t,
    with which some rounds are far out; ``drift`` is what the second worker of a round meets.
    ``measured`` is the metric whose threshold the ends are compared by.
    """

    name: str
    spread: float
    layout: float = 0.002
    session: float = 0.0
    df: float = math.inf
    drift: float = 0.0
    measured: str = "latency_p50"

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return what the rounds of one session add to the change."""
        offset = rng.normal(0.0, self.session)
        drift = self.drift * (0.5 - np.arange(count) % 2)
        if self.df < math.inf:
            scale = self.spread * math.sqrt(1.0 - 2.0 / self.df)
            return offset + drift + scale * rng.standard_t(self.df, count)
        return offset + drift + rng.normal(0.0, self.spread, count)


PLAIN = tuple(Noise(f"{spread:.0%} normal", spread) for spread in (0.01, 0.02, 0.03))
LAYOUT = tuple(Noise(f"layout {luck:.1%}", 0.01, luck) for luck in (0.003, 0.01, 0.02))
SESSIONS = tuple(Noise(f"sessions {luck:.1%}", 0.01, session=luck) for luck in (0.003, 0.01, 0.02))
BOTH = Noise("layout 1.0%, sessions 1.0%", 0.01, 0.01, 0.01)
HEAVY = Noise("2% heavy tails, t3", 0.02, df=3.0)
DRIFT = Noise("drift of 1% a round", 0.01, drift=0.01)
HOST = Noise("host memory, 0.05%", 0.0005, 0.0005, measured="peak_host_memory")
DEVICE = Noise("device memory, exact", 0.0, 0.0, measured="peak_device_memory")
IMPORT = Noise("import, 3% normal", 0.03, measured="import_time")

CELLS: tuple[tuple[Noise, int, tuple[float, ...]], ...] = (
    *((noise, 64, (0.10,)) for noise in (*PLAIN, HOST, DEVICE, IMPORT, HEAVY, DRIFT)),
    *((noise, 64, (0.05,)) for noise in (*PLAIN, HEAVY, DRIFT)),
    *((noise, 64, (0.10,)) for noise in (*LAYOUT, *SESSIONS, BOTH)),
    *((noise, 64, (0.05,)) for noise in (*LAYOUT, *SESSIONS, BOTH)),
    *((LAYOUT[1], 64, (size,)) for size in (0.03, -0.05)),
    *((noise, length, (0.05,)) for noise in (PLAIN[0], LAYOUT[1]) for length in (8, 16, 256)),
    *((PLAIN[1], 64, sizes) for sizes in ((0.1, 0.2), (0.2, -0.1), (0.1, 0.1, 0.1))),
    *((noise, 64, (0.1, -0.1, 0.1)) for noise in (PLAIN[0], LAYOUT[1])),
    *((noise, 64, (0.1, 0.2)) for noise in (LAYOUT[1], SESSIONS[1])),
    *((noise, 64, ()) for noise in (PLAIN[0], LAYOUT[1], SESSIONS[1])),
)


@dataclass(frozen=True, slots=True)
class History:
    """Levels by position, 0 for good; ``culprits`` are where they change."""

    levels: tuple[float, ...]
    culprits: tuple[int, ...]
    unbuildable: frozenset[int]


@dataclass(frozen=True, slots=True)
class Stated:
    """A change that a search named: its probability, and whether a culprit is among its commits.

    ``narrow``: as few commits as the unbuildable ones allow. ``holds``: so does its interval.
    """

    probability: float
    right: bool
    narrow: bool
    holds: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one search ended.

    ``begun``: the ends were seen to differ. ``stated`` are the changes that were found. ``missed``:
    a culprit is in none of them, and the answer doesn't say that it may have been taken back.
    """

    begun: bool
    stated: tuple[Stated, ...]
    missed: bool
    comparisons: int
    rounds: int


def planted(
    rng: np.random.Generator, length: int, sizes: tuple[float, ...], layout: float
) -> History:
    """Return a history with changes of these sizes, at places that are drawn."""
    culprits = tuple(sorted(int(at) + 1 for at in rng.choice(length, len(sizes), replace=False)))
    levels = rng.normal(0.0, layout, length + 1)
    for culprit, size in zip(culprits, sizes, strict=True):
        levels[culprit:] += math.log1p(size)
    broken = frozenset(int(at) for at in np.flatnonzero(rng.random(length + 1) < UNBUILDABLE))
    return History(tuple(levels), culprits, broken - {0, length})


def measured(
    history: History, asked: Question, noise: Noise, rng: np.random.Generator
) -> SessionAnswer:
    """Return the answer of one session: rounds until the rule of every session ends it."""
    settings, levels = MeasureSettings(), history.levels
    change = levels[asked.position] - levels[asked.base]
    if noise.spread == 0.0:
        return SessionAnswer(asked.position, change, 0.0, 1.0, DECIDING_ROUNDS, asked.base)
    ratios = change + noise.draw(rng, settings.max_rounds)
    for rounds in range(DECIDING_ROUNDS, settings.max_rounds + 1):
        test = paired_t([0.0] * rounds, list(ratios[:rounds]), resolution=Resolution(1e-12))
        assert test.estimate is not None
        assert test.se is not None
        assert test.df is not None
        assert test.lo is not None
        assert test.hi is not None
        if is_decided(test.lo, test.hi, test.p, asked.margin, ALPHA, two_sided=True):
            break
    return SessionAnswer(asked.position, test.estimate, test.se, test.df, rounds, asked.base)


def searched(
    history: History, noise: Noise, rng: np.random.Generator
) -> tuple[Search, tuple[LevelChange, ...]]:
    """Search ``history`` as the command does, which ends where the ends don't differ."""
    length = len(history.levels) - 1
    margin = math.log1p(ends_threshold(Policy(), noise.measured))
    ends = measured(history, Question(length, margin), noise, rng)
    answers, skipped = [ends], list[int]()
    if ends.change == 0.0 or (ends.se and two_sided_p(ends.change / ends.se, ends.df) >= ALPHA):
        return Search(length), ()
    while question := next_question(search := Search(length, tuple(answers), tuple(skipped))):
        if question.position in history.unbuildable:
            skipped.append(question.position)
        else:
            answers.append(measured(history, question, noise, rng))
    return search, changes(search)


def outcome(history: History, noise: Noise, rng: np.random.Generator) -> Outcome:
    """Return how a search went."""
    search, named = searched(history, noise, rng)
    found = [change for change in named if change.found]
    return Outcome(
        bool(search.answers),
        tuple(_stated(change, history) for change in found),
        any(not _accounted(at, search, found, history) for at in history.culprits),
        len(search.answers),
        sum(answer.rounds for answer in search.answers),
    )


def _stated(change: LevelChange, history: History) -> Stated:
    size = history.levels[change.last] - history.levels[change.first - 1]
    return Stated(
        change.probability,
        any(change.first <= at <= change.last for at in history.culprits),
        all(at in history.unbuildable for at in range(change.first, change.last)),
        change.lo is not None and change.hi is not None and change.lo <= size <= change.hi,
    )


def _accounted(at: int, search: Search, found: list[LevelChange], history: History) -> bool:
    """Return whether a culprit is named, or lies where the answer says that none was measured."""
    levels = history.levels
    return any(change.first <= at <= change.last for change in found) or any(
        before < at <= after and abs(levels[after] - levels[before]) < ALIKE
        for before, after in (unseen(search) if found else ())
    )


def outcomes(noise: Noise, length: int, sizes: tuple[float, ...], count: int) -> list[Outcome]:
    """Return how ``count`` searches of drawn histories went."""
    name = int.from_bytes(noise.name.encode(), "big")
    rng = np.random.default_rng([length, *(round(1000 * size) + 1000 for size in sizes), name])
    return [outcome(planted(rng, length, sizes, noise.layout), noise, rng) for _ in range(count)]


def cell(task: tuple[Noise, int, tuple[float, ...], int]) -> str:
    """Return a row of the table."""
    noise, length, sizes, count = task
    ended = outcomes(noise, length, sizes, count)
    begun = [search for search in ended if search.begun]
    stated = [change for search in begun for change in search.stated]
    narrow = [change for change in stated if change.narrow]
    sure = [change for change in stated if change.probability >= 0.95]
    surer = [change for change in stated if change.probability >= 0.99]
    comparisons = [search.comparisons for search in begun] or [0]
    return (
        f"| {noise.name} | {length} | {' and '.join(f'{size:+.0%}' for size in sizes) or 'none'} "
        f"| {_share(not search.begun for search in ended)} "
        f"| {_share(bool(search.stated) for search in begun)} "
        f"| {_share(change.right for change in sure)} of {len(sure)} "
        f"| {_share(change.right for change in surer)} of {len(surer)} "
        f"| {_share(not change.narrow for change in stated)} "
        f"| {_share(not change.right for change in narrow)} "
        f"| {_share(search.missed for search in begun if search.stated)} "
        f"| {np.median(comparisons):.0f} | {np.quantile(comparisons, 0.95):.0f} "
        f"| {np.median([search.rounds for search in begun] or [0]):.0f} "
        f"| {_share(change.holds for change in stated)} |"
    )


def _share(those: Iterable[bool]) -> str:
    """Return the share of True as a percentage; a dash where there is nothing to share."""
    values = list(those)
    return f"{sum(values) / len(values):.1%}" if values else "–"


HEAD = """\
| noise | commits | change | not seen | answered | right where ≥ 95 % | right where ≥ 99 % | ranges | single commits wrong | a change missed | comparisons, median | 95 % | rounds, median | interval holds |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""  # noqa: E501


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="", help="cells whose noise has this in its name")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tasks = [(*task, options.searches) for task in CELLS if options.only in task[0].name]
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
