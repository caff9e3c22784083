"""The search for changes: its state, the commit to measure next, the end, and the result.

A *gap* lies between two neighbouring measured positions; its number indexes ``Beliefs.changed``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, SkippedCommit
from perfci.bisect.posterior import Beliefs, SessionAnswer, believe
from perfci.stats.t_tests import CONFIDENCE, t_quantile

SURE = 0.95
"""A gap with at least this probability counts as a found change. Of a hundred such answers 95 are
right."""
SUSPECT = 0.05
"""Least probability of a change that is searched for. With 0.1, one of three changes of 10 % is
missed in 4 % of searches, because the ends are compared in few rounds, whose t has heavy tails."""
MOST_PER_COMMIT = 4
"""Limit of measurements of a commit. The luck of its build doesn't average out."""
NEIGHBOURS = 4
"""Commits measured on either side of a change, the gap's own end included, where a step must be
separated from luck."""
_ONE_CHANGE = 1.2
"""Total probability up to which neighbouring gaps hold one change."""
_LIKELY = 0.5
"""Total probability from which a window is named as a change: more likely there than not."""
_MARGINS_PER_CHANGE = 20.0
"""A question's margin is at least the change ÷ this: a smaller one would take too many rounds."""
_SPARE_QUESTIONS = 12
"""Comparisons that a search may take whatever its length: both ends, neighbours, confirmations."""


@dataclass(frozen=True, slots=True)
class Search:
    """The state of a search over ``length`` commits after the good one. The last is bad.

    ``skipped`` are positions that can't be measured: an answer next to them remains a range.
    """

    length: int
    answers: tuple[SessionAnswer, ...] = ()
    skipped: tuple[int, ...] = ()

    @property
    def end_to_end_change(self) -> float | None:
        """The change between both ends, or None before they were compared."""
        ends = self.between(0, self.length)
        return _pooled(ends)[0] if ends else None

    def between(self, base: int, position: int) -> tuple[SessionAnswer, ...]:
        """Return the answers of the commit at ``position`` against the one at ``base``."""
        return tuple(
            answer for answer in self.answers if (answer.base, answer.position) == (base, position)
        )

    def counts(self, position: int) -> int:
        """Return the number of measurements of the commit at ``position``."""
        return sum(answer.position == position for answer in self.answers)

    def can_ask(self, position: int) -> bool:
        """Return whether the commit at ``position`` may be measured (again)."""
        return position not in self.skipped and self.counts(position) < MOST_PER_COMMIT


@dataclass(frozen=True, slots=True)
class Question:
    """Measure the commit at ``position`` against ``base``'s until it is clear of ``margin``.

    ``margin`` is a distance from base, in both directions. While a change is sought, base is good
    and the margin is halfway between the levels of the ends between which it lies.
    """

    position: int
    margin: float
    base: int = 0


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level: at one of the positions ``first`` to ``last``, both included.

    If it was ``found``, more comparisons would not narrow it down. Otherwise the search ended
    first. ``size`` is the change of ``last`` against the commit before ``first``. It has a 95 %
    interval if those two commits were compared.
    """

    first: int
    last: int
    probability: float
    found: bool
    size: float
    lo: float | None = None
    hi: float | None = None


def next_question(search: Search) -> Question | None:
    """Return what to measure next, or None once every change is found, as far as that is possible.

    The ends have to be compared first. The question is about the middle of the most probable gap.
    If that can't be divided, an end is measured again or a commit next to it, whichever separates a
    step from luck. The median of the posterior (Horstein 1963) was rejected, because after one
    wrong answer it measures commits near the change over and over. A change that is found is
    confirmed by comparing its commit with the one before. If they don't differ, the search goes on.
    """
    beliefs, end_to_end_change = _beliefs(search)
    if len(search.answers) >= most_questions(search.length):
        return None
    gaps = sorted(
        (gap for gap in range(len(beliefs.changed)) if not _is_found(search, beliefs, gap)),
        key=lambda gap: -beliefs.changed[gap],
    )
    # the ends differ, so while no change is named even an unlikely gap is asked about
    least_probability = SUSPECT if changes(search) else 0.0
    for gap in gaps:
        if beliefs.changed[gap] < least_probability:
            break
        position = _middle(search, beliefs, gap)
        if position is None:
            position = _closer_look(search, beliefs, gap)
        if position is not None:
            old, new = (_center(search, end) for end in beliefs.positions[gap : gap + 2])
            least_margin = max(abs(new - old), abs(end_to_end_change)) / _MARGINS_PER_CHANGE
            return Question(position, max(abs(old + new) / 2.0, least_margin))
    return _confirmation(search, changes(search))


def _confirmation(search: Search, named: Sequence[LevelChange]) -> Question | None:
    """Return the next comparison of a found change with the commit before it.

    None if every found change has that comparison, or a commit that can't be measured.
    """
    for change in named:
        if change.found and change.lo is None and change.last not in search.skipped:
            return Question(change.last, abs(change.size) / 2.0, change.first - 1)
    return None


def most_questions(length: int) -> int:
    """Return the limit of comparisons in a search: three per halving of its commits, and a few."""
    return 3 * math.ceil(math.log2(length + 1)) + _SPARE_QUESTIONS


def changes(search: Search) -> tuple[LevelChange, ...]:
    """Return the changes of a search, also those that are still ranges, the oldest first."""
    beliefs, _ = _beliefs(search)
    spans: list[tuple[int, int, bool]] = []
    taken: set[int] = set()
    for gap in sorted(range(len(beliefs.changed)), key=lambda gap: -beliefs.changed[gap]):
        if gap in taken or beliefs.changed[gap] < SUSPECT:
            continue
        is_found = _is_found(search, beliefs, gap)
        first, last = (gap, gap) if is_found else _window(search, beliefs, gap, taken)
        if sum(beliefs.changed[first : last + 1]) < _LIKELY:
            continue
        first, last = _trimmed(beliefs, first, last)
        if not is_found and sum(beliefs.changed[first : last + 1]) >= SURE:
            is_found = _is_exhausted(search, beliefs, range(first, last + 1))
        taken |= set(range(first, last + 1))
        spans.append((first, last, is_found))
    spans.sort()
    return tuple(_change(search, beliefs, *span) for span in spans)


def _change(search: Search, beliefs: Beliefs, first: int, last: int, is_found: bool) -> LevelChange:
    before, after = beliefs.positions[first], beliefs.positions[last + 1]
    probability = min(1.0, sum(beliefs.changed[first : last + 1]))
    direct = search.between(before, after)
    if not direct:
        size = beliefs.levels[last + 1] - beliefs.levels[first]
        return LevelChange(before + 1, after, probability, is_found, size)
    size, se, df = _pooled(direct)
    quantile = t_quantile(0.5 + CONFIDENCE / 2, df)
    luck = beliefs.session_luck / math.sqrt(len(direct)) if se else 0.0  # exact counts have none
    half = quantile * math.hypot(se, luck)
    return LevelChange(before + 1, after, probability, is_found, size, size - half, size + half)


@lru_cache(maxsize=4)
def _beliefs(search: Search) -> tuple[Beliefs, float]:
    """Return the posterior of a search, and the change between its ends."""
    change = search.end_to_end_change
    if change is None or change == 0.0:
        raise ValueError("the ends were not compared, or don't differ")
    return believe(search.length, search.answers, abs(change)), change


def _inside(search: Search, beliefs: Beliefs, gap: int) -> list[int]:
    """Return the positions within a gap that could be measured."""
    before, after = beliefs.positions[gap : gap + 2]
    return [position for position in range(before + 1, after) if position not in search.skipped]


def _is_found(search: Search, beliefs: Beliefs, gap: int) -> bool:
    return beliefs.changed[gap] >= SURE and not _inside(search, beliefs, gap)


def _is_exhausted(search: Search, beliefs: Beliefs, gaps: Sequence[int]) -> bool:
    """Return whether no comparison narrows ``gaps`` further: commits differ by luck as much."""
    return len(search.answers) >= most_questions(search.length) or all(
        _middle(search, beliefs, gap) is None and _closer_look(search, beliefs, gap) is None
        for gap in gaps
        if beliefs.changed[gap] >= SUSPECT
    )


def _window(search: Search, beliefs: Beliefs, gap: int, taken: set[int]) -> tuple[int, int]:
    """Return the first and last of the gaps around ``gap`` that hold one change between them."""
    first = last = gap
    total = beliefs.changed[gap]

    def chance(other: int) -> float:
        if not 0 <= other < len(beliefs.changed) or other in taken:
            return -1.0
        if _is_found(search, beliefs, other):
            return -1.0
        return beliefs.changed[other]

    while True:
        left, right = chance(first - 1), chance(last + 1)
        more = max(left, right)
        if more < 0.0 or total + more > _ONE_CHANGE:
            return first, last
        total += more
        if left >= right:
            first -= 1
        else:
            last += 1


def _middle(search: Search, beliefs: Beliefs, gap: int) -> int | None:
    """Return the position that most nearly halves a gap, or None if the gap can't be divided."""
    before, after = beliefs.positions[gap : gap + 2]
    inside = _inside(search, beliefs, gap)
    return min(inside, key=lambda position: abs(2 * position - before - after), default=None)


def _closer_look(search: Search, beliefs: Beliefs, gap: int) -> int | None:
    """Return the position that tells most about a gap between two neighbours, or None.

    It is the end of the gap whose level is known less well, as long as its answers err by more than
    commits differ by luck. Otherwise it is the nearest commit outside the gap.
    """

    def error(end: int) -> float:
        answers = search.between(0, beliefs.positions[end])
        se = min((answer.se for answer in answers), default=0.0)
        return math.hypot(se, beliefs.session_luck) / math.sqrt(max(1, len(answers)))

    ends = [end for end in (gap, gap + 1) if end and search.can_ask(beliefs.positions[end])]
    vaguer = max(ends, key=error, default=0)
    if vaguer and error(vaguer) >= beliefs.commit_luck:
        return beliefs.positions[vaguer]
    before, after = beliefs.positions[gap : gap + 2]
    outside = [
        position
        for distance in range(1, NEIGHBOURS)  # at distance 0 are the gap's own ends
        for position in (before - distance, after + distance)
        if 0 < position <= search.length
        and search.can_ask(position)
        and not search.counts(position)
    ]
    if outside:
        return outside[0]
    if vaguer and error(vaguer) >= beliefs.commit_luck / 2.0:
        return beliefs.positions[vaguer]
    return None


def _center(search: Search, position: int) -> float:
    """Return the mean of a commit's answers against good."""
    answers = search.between(0, position)
    return _pooled(answers)[0] if answers else 0.0


def _trimmed(beliefs: Beliefs, first: int, last: int) -> tuple[int, int]:
    """Return the smallest part of a window with ``SURE`` probability, or ``SURE`` of its own."""
    total = left = sum(beliefs.changed[first : last + 1])
    least = SURE if total >= SURE else SURE * total
    while first < last:
        end = min((first, last), key=lambda gap: beliefs.changed[gap])
        if left - beliefs.changed[end] < least:
            break
        left -= beliefs.changed[end]
        first, last = (first + 1, last) if end == first else (first, last - 1)
    return first, last


def _pooled(answers: Sequence[SessionAnswer]) -> tuple[float, float, float]:
    """Return the mean of answers weighted by their precision, its standard error and its df."""
    exact = [answer.change for answer in answers if answer.se == 0.0]
    if exact:
        return sum(exact) / len(exact), 0.0, math.inf
    weights = [answer.se**-2 for answer in answers]
    center = sum(w * answer.change for w, answer in zip(weights, answers, strict=True)) / sum(
        weights
    )
    return center, sum(weights) ** -0.5, sum(answer.df for answer in answers)


@dataclass(frozen=True, slots=True)
class SoughtMetric:
    """The metric that is searched for. Its changes are logarithms of ratios, or differences."""

    case: str
    metric: str
    unit: str
    direction: str
    scale: Literal["log", "difference"]
    environment: str


@dataclass(slots=True)
class SearchState:
    """All that a search knows.

    The ``commits`` are those of a branch by first parents, the oldest first, and ``good`` is the
    commit before them. ``skipped`` are those that could not be measured. ``sought`` is known once
    the ends were compared.
    """

    good: NamedCommit
    commits: tuple[NamedCommit, ...]
    search: Search
    skipped: tuple[SkippedCommit, ...] = ()
    sought: SoughtMetric | None = None

    def at(self, position: int) -> NamedCommit:
        """Return the commit at a position of the search."""
        return self.commits[position - 1] if position else self.good

    def add(self, answer: SessionAnswer) -> None:
        """Add the answer of a session."""
        self.search = replace(self.search, answers=(*self.search.answers, answer))

    def skip(self, position: int, why: str) -> None:
        """Leave out a commit that can't be measured."""
        self.search = replace(self.search, skipped=(*self.search.skipped, position))
        self.skipped += (SkippedCommit(self.at(position), why),)

    def result(self, sought: SoughtMetric, ended: Ended) -> Bisection:
        """Return the answer so far."""
        change = self.search.end_to_end_change
        found = changes(self.search) if change else ()
        ratio, difference = _in_scale(sought, change or 0.0)
        return Bisection(
            good=self.good,
            bad=self.commits[-1],
            commits=len(self.commits),
            case=sought.case,
            metric=sought.metric,
            unit=sought.unit,
            ratio=ratio,
            difference=difference,
            culprits=tuple(self._culprit(change, sought) for change in found),
            skipped=self.skipped,
            comparisons=len(self.search.answers),
            rounds=sum(answer.rounds for answer in self.search.answers),
            ended=ended,
        )

    def _culprit(self, change: LevelChange, sought: SoughtMetric) -> Culprit:
        ratio, difference = _in_scale(sought, change.size)
        ratio_lo, difference_lo = _in_scale(sought, change.lo)
        ratio_hi, difference_hi = _in_scale(sought, change.hi)
        return Culprit(
            commits=self.commits[change.first - 1 : change.last],
            before=self.at(change.first - 1).sha,
            probability=change.probability,
            found=change.found,
            improved=(change.size > 0.0) != (sought.direction == "lower"),
            ratio=ratio,
            ratio_lo=ratio_lo,
            ratio_hi=ratio_hi,
            difference=difference,
            difference_lo=difference_lo,
            difference_hi=difference_hi,
        )


def _in_scale(sought: SoughtMetric, size: float | None) -> tuple[float | None, float | None]:
    """Return a change's size as a ratio and as a difference, of which one is None."""
    if size is None:
        return None, None
    return (math.exp(size), None) if sought.scale == "log" else (None, size)
