"""The posterior of a history: the probability that its level changed, gap by gap.

Probabilistic bisection (Horstein 1963, IEEE Trans. Inf. Theory 9:136-143; Waeber, Frazier &
Henderson 2013, SIAM J. Control Optim. 51:2261-2279) keeps a posterior over places, which each
answer multiplies by its likelihood. There an answer is a yes or no that is right with a known
probability. Here it is a measured change, so that a clear answer counts for more than a faint
one.

The level is a Markov chain along the commits, on a grid, which jumps with the probability
``EXPECTED`` ÷ ``length`` per commit to any level at least ``LEAST`` away. A commit's own value
is normal around the level: the layout of its code is luck that no repetition averages away.
Good has such luck too. An answer is Student's t around the difference of two values, mixed with
``WRONG`` of a uniform one, and as much wider as sessions differ. Both standard deviations are
unknown: the posterior is a mean over ``LUCK`` and ``SESSION_SHARES``, weighted by how well each
explains all answers. Paths without any jump have ``NO_CHANGE`` of the prior.

An answer against another base than good counts only if both commits are neighbours among the
measured ones. Then it is about the difference of their two values. Forward and backward sums
(Rabiner 1989, Proc. IEEE 77:257-286) over level and value at the measured commits are exact,
but for the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from scipy import special

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

EXPECTED = 0.2
"""Changes that a range of commits is expected to have beyond the first, a priori."""
NO_CHANGE = 0.25
"""The probability, a priori, that the ends differ by luck alone."""
WRONG = 0.003
"""The probability that a session says nothing about its commit: another program woke up, say."""
EXACT_WRONG = 1e-6
"""The same probability for a count on which all workers agree."""
LEAST = 0.25
"""Smaller steps than this share of the whole change are not looked for."""
LUCK = ((0.0, 0.2), (0.06, 0.2), (0.12, 0.15), (0.25, 0.15), (0.5, 0.15), (1.0, 0.15))
"""Standard deviations of luck as shares of the whole change, each with its prior probability."""
SESSION_SHARES = (0.0, 1.0)
"""Shares of luck's variance that each session draws again, equally probable a priori. The rest is
the commit's own."""
_EXACT_DF = 1000.0
"""Degrees of freedom for an exact answer: Student's t is almost normal then."""
_STEPS = 16
"""Steps of the grid in the whole change, unless ``_MOST_LEVELS`` makes them wider."""
_MOST_LEVELS = 120
"""Number of the grid's levels at most, about."""
_BEYOND = 0.4
"""Share of the whole change by which the grid extends beyond all answers."""


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """A session's answer: the change of the commit at ``position`` against the one at ``base``.

    ``base`` is mostly 0, the good commit. ``se`` is the standard error of ``change``, with ``df``
    degrees of freedom. It is 0 for an exact metric.
    """

    position: int
    change: float
    se: float
    df: float
    rounds: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True)
class Beliefs:
    """The posterior after some answers.

    ``positions`` are the measured ones, 0 first. ``changed`` has for each gap between two
    neighbours the probability that the level changed in it. ``levels`` are the mean levels at the
    positions. ``commit_luck`` and ``session_luck`` are root mean squares: of the luck that a commit
    keeps, and of the luck that each session draws again.
    """

    positions: tuple[int, ...]
    changed: tuple[float, ...]
    levels: tuple[float, ...]
    commit_luck: float
    session_luck: float


def believe(length: int, answers: Sequence[SessionAnswer], scale: float) -> Beliefs:
    """Return the posterior of a history of ``length`` commits. ``scale`` is the whole change."""
    import numpy as np

    positions = (0, *sorted({answer.position for answer in answers}))
    chain = _Chain(positions, answers, scale)
    stays = np.array(
        [math.exp(-EXPECTED * (after - before) / length) for before, after in pairwise(positions)]
    )
    forward, log_all = chain.forward(stays, 1.0 - stays)
    _, log_none = chain.forward(stays, np.zeros_like(stays))
    backward = chain.backward(stays)
    # prior odds of no change at all: from those of the chain to NO_CHANGE
    never = math.exp(-EXPECTED)
    rescale = NO_CHANGE / (1.0 - NO_CHANGE) * (1.0 - never) / never
    top = float((log_all + chain.log_prior).max())
    everything = np.exp(log_all + chain.log_prior - top)
    nothing = np.minimum(np.exp(log_none + chain.log_prior - top), everything)
    total = float((everything - (1.0 - rescale) * nothing).sum())
    changed = []
    for gap, stay in enumerate(stays):
        after = chain.ahead(gap, backward[gap + 1])
        unmoved = stay * (forward[gap] * after).sum(axis=(1, 2))
        moved = (1.0 - stay) * (forward[gap] * chain.jumped(after)).sum(axis=(1, 2))
        changed.append(float((everything * moved / (unmoved + moved)).sum()) / total)
    weights = everything / everything.sum()
    both = zip(forward, backward, strict=True)
    return Beliefs(
        positions,
        tuple(changed),
        tuple(chain.level(before * behind, weights) for before, behind in both),
        math.sqrt(float(weights @ chain.commit_luck**2)),
        math.sqrt(float(weights @ chain.session_luck**2)),
    )


class _Chain:
    """The chain's factors: arrays by pair of standard deviations, by level and by own value."""

    def __init__(
        self, positions: tuple[int, ...], answers: Sequence[SessionAnswer], scale: float
    ) -> None:
        import numpy as np

        self.grid = _grid(answers, scale)
        step = float(self.grid[1] - self.grid[0])
        pairs = [
            (luck * scale * math.sqrt(1.0 - share), luck * scale * math.sqrt(share), prior / count)
            for luck, prior in LUCK
            for count in [len(SESSION_SHARES) if luck else 1]
            for share in SESSION_SHARES[:count]
        ]
        luck = np.array(pairs)
        self.commit_luck, self.session_luck, self.log_prior = (
            luck[:, 0],
            luck[:, 1],
            np.log(luck[:, 2]),
        )
        widths = np.hypot(self.commit_luck, step / 2.0)[:, None, None]  # the grid's own width
        self._extra = np.hypot(self.session_luck, step / 2.0)
        apart = self.grid[None, :] - self.grid[:, None]
        # the probability of a commit's own value (last axis), given its level
        around = step / widths / math.sqrt(math.tau) * np.exp(-0.5 * (apart / widths) ** 2)
        # good's own value is 0: all changes are measured against it
        good = (np.abs(self.grid) < step / 2.0).astype(float)
        values = [np.tile(good, (len(luck), 1))]
        values += [np.ones((len(luck), len(self.grid))) for _ in positions[1:]]
        self._between: dict[int, Array] = {}
        size = len(self.grid)
        differences = step * np.arange(1 - size, size)
        index = np.arange(size)[None, :] - np.arange(size)[:, None] + size - 1
        for answer in answers:
            place = positions.index(answer.position)
            if answer.base == 0:
                values[place] = values[place] * self._likelihood(self.grid, answer)
            elif positions[place - 1] == answer.base:
                likelihood = self._likelihood(differences, answer)[:, index]
                self._between[place - 1] = self._between.get(place - 1, 1.0) * likelihood
        self._seen = [around * value[:, None, :] for value in values]
        # a jump leads to each level that is far enough away with the same probability
        far = (np.abs(apart) >= LEAST * scale - 1e-9 * scale).astype(float)
        self._jump = far / far.sum(axis=1, keepdims=True)

    def _likelihood(self, changes: Array, answer: SessionAnswer) -> Array:
        import numpy as np

        df, wrong = (answer.df, WRONG) if answer.se > 0.0 else (_EXACT_DF, EXACT_WRONG)
        width = np.hypot(answer.se, self._extra)[:, None]
        constant = math.exp(special.gammaln((df + 1.0) / 2.0) - special.gammaln(df / 2.0))
        z = (answer.change - changes) / width
        density = (
            constant / math.sqrt(df * math.pi) / width * (1.0 + z**2 / df) ** (-(df + 1.0) / 2.0)
        )
        uniform = wrong / float(self.grid[-1] - self.grid[0])
        mixed: Array = np.asarray((1.0 - wrong) * density + uniform)
        return mixed

    def forward(self, stays: Array, jumps: Array) -> tuple[list[Array], Array]:
        """Return what all answers up to each position say of its state, and their log evidence."""
        import numpy as np

        state, log = _normal(self._seen[0])
        states, evidence = [state], log
        for gap, (stay, jump) in enumerate(zip(stays, jumps, strict=True)):
            before = state if gap in self._between else state.sum(axis=2, keepdims=True)
            moved = stay * before
            if jump:
                moved = moved + jump * (self._jump.T @ before)
            if gap in self._between:
                moved = moved @ self._between[gap]
            state, log = _normal(moved * self._seen[gap + 1])
            states.append(state)
            evidence = evidence + log
        return states, np.asarray(evidence)

    def backward(self, stays: Array) -> list[Array]:
        """Return what all answers after each position say of its state."""
        import numpy as np

        states = [np.ones_like(self._seen[-1])]
        for gap in reversed(range(len(stays))):
            after = self.ahead(gap, states[0])
            state, _ = _normal(stays[gap] * after + (1.0 - stays[gap]) * self.jumped(after))
            states.insert(0, state)
        return states

    def ahead(self, gap: int, after: Array) -> Array:
        """Return what answers beyond a gap say, by the level after the gap and the value before."""
        import numpy as np

        state = self._seen[gap + 1] * after
        if gap in self._between:
            return np.asarray(state @ self._between[gap].transpose(0, 2, 1))
        return np.asarray(state.sum(axis=2, keepdims=True))

    def level(self, states: Array, weights: Array) -> float:
        """Return the mean level of a position whose state is ``states``."""
        chances = states.sum(axis=2)
        return float(weights @ (chances / chances.sum(axis=1, keepdims=True)) @ self.grid)

    def jumped(self, after: Array) -> Array:
        """Return ``after`` by the level before a gap in which the level changes."""
        moved: Array = self._jump @ after
        return moved


def _grid(answers: Sequence[SessionAnswer], scale: float) -> Array:
    """Return the grid of levels around all answers, with good's level, 0.

    Its steps are wider if the answers lie far apart.
    """
    import numpy as np

    changes = (0.0, *(answer.change for answer in answers))
    low, high = min(changes) - _BEYOND * scale, max(changes) + _BEYOND * scale
    step = max(scale / _STEPS, (high - low) / _MOST_LEVELS)
    return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)


def _normal(values: Array) -> tuple[Array, Array]:
    """Return ``values``, scaled to the sum 1 for each pair of deviations, and the sums' logs."""
    import numpy as np

    sums = values.sum(axis=(1, 2), keepdims=True)
    return values / sums, np.log(sums[:, 0, 0])
