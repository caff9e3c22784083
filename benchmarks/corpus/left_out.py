"""Rules that were left out, judged on the corpus: a covariate, variances known before, a screen."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.optimize import brentq
from scipy.special import polygamma

from benchmarks.corpus.score import LATENCY, load_of
from benchmarks.corpus.sessions import DATA, FEWEST, scored_sessions
from benchmarks.screen import table as screen
from benchmarks.statistics.scoring import markdown
from perfci.measure.kept_bursts import KeptRound, KeptWorker, read_kept
from perfci.stats.t_tests import t_quantile

_PROBABILITY = 0.9945
"""Probability below the upper end of each look's interval of 98.9 %, with 5 to 20 rounds."""
WORTHWHILE = 0.5
"""Correlation from which on a covariate is worth its risk: it saves a share ρ² of the rounds."""


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A case of one session: the log ratio of each round, and head's run delay less base's.

    A run delay is a share of the time that the bursts took.
    """

    kind: str
    load: str
    log_ratios: tuple[float, ...]
    delays: tuple[float, ...]

    @property
    def correlation(self) -> float | None:
        """The correlation of both, or None where no worker was delayed."""
        if len(set(self.delays)) < 2:
            return None
        return statistics.correlation(self.delays, self.log_ratios)


def recorded_cases(folder: Path = DATA) -> list[RecordedCase]:
    """Return the cases of all sessions that have enough rounds to be scored."""
    cases = []
    for recorded in scored_sessions(folder):
        session = read_kept(folder / recorded.file)
        for index, case in enumerate(session.cases):
            rounds = [kept for kept in session.rounds if kept.case == index]
            if len(rounds) >= FEWEST:
                ratios = tuple(map(_log_ratio, rounds))
                delays = tuple(map(_delay, rounds))
                cases.append(RecordedCase(case.id, load_of(session, index), ratios, delays))
    return cases


def _log_ratio(kept: KeptRound) -> float:
    base, head = (kept.workers[side].output.values[LATENCY] for side in ("base", "head"))
    return math.log(head / base)


def _delay(kept: KeptRound) -> float:
    return _delay_share(kept.workers["head"]) - _delay_share(kept.workers["base"])


def _delay_share(worker: KeptWorker) -> float:
    calls = sum(block.samples for block in worker.blocks)
    return sum(worker.delay_ns) / 1e9 / (calls * statistics.fmean(worker.means_s))


def covariate_table(cases: Sequence[RecordedCase]) -> str:
    """Return how the run delay correlates with what a round measures, by load."""
    by_load: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        if case.correlation is not None:
            by_load[case.load].append(case.correlation)
    rows = [
        (load, len(known), f"{statistics.median(known):.2f}", sum(r >= WORTHWHILE for r in known))
        for load, known in sorted(by_load.items())
    ]
    return markdown(("load", "cases", "median ρ", f"ρ of {WORTHWHILE} and more"), rows)


def prior_degrees(groups: Sequence[Sequence[tuple[float, int]]]) -> float:
    """Return the degrees of freedom ``d0`` of a prior from earlier variances of the same kind.

    ``groups`` has the variances of each kind with their degrees of freedom ``d``. The log of such a
    variance scatters by ``trigamma(d/2) + trigamma(d0/2)`` (Smyth 2004, Statistical Applications in
    Genetics and Molecular Biology 3:3). Infinite if sessions scatter no more than their rounds do.
    """
    beyond = []
    for group in groups:
        logs = [math.log(variance) for variance, _ in group]
        own = statistics.fmean(float(polygamma(1, degrees / 2.0)) for _, degrees in group)
        beyond += [statistics.variance(logs) - own] * (len(group) - 1)
    scatter = statistics.fmean(beyond)
    if scatter <= 0.0:
        return math.inf
    return float(brentq(lambda d0: polygamma(1, d0 / 2.0) - scatter, 1e-3, 1e6))


def text(folder: Path = DATA) -> str:
    """Return the tables, with what follows from them."""
    cases = recorded_cases(folder)
    by_kind: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for case in cases:
        of_rounds = (statistics.variance(case.log_ratios), len(case.log_ratios) - 1)
        by_kind[case.kind].append(of_rounds)
    groups = [group for group in by_kind.values() if len(group) > 1]
    factors = [math.sqrt(max(group)[0] / min(group)[0]) for group in groups]
    degrees = prior_degrees(groups)
    known, alone = (t_quantile(_PROBABILITY, 4.0 + more) for more in (degrees, 0.0))
    return _TEXT.format(
        covariates=covariate_table(cases),
        kinds=len(groups),
        factor=statistics.median(factors),
        most=max(factors),
        degrees=degrees,
        narrower=1.0 - known / alone,
        screen=screen.text(screen.kept_outcomes()),
    )


_TEXT = """\
**Run delay as a covariate** (how long the kernel kept a side's worker off its core). The
correlation of its difference between the sides with the log ratio of a round:

{covariates}

A covariate would help on busy machines only. There it would also take away part of a true change:
a head with more threads has more of them waiting. This machine gives no cycles and no frequency.

**The variance of a case in earlier sessions** as a prior of today's. Of {kinds} kinds with several
sessions, the largest spread of a round is {factor:.1f} times the smallest in the median, {most:.0f}
times at most. A prior from them has {degrees:.1f} degrees of freedom; five rounds of today have
four. It would narrow their intervals by {narrower:.0%} on average, and be too narrow where a
session is noisier than those before: the level wouldn't hold on the days that need it.

{screen}"""
