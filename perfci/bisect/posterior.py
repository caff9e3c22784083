"""What answers say of a history: with which probability the level changed in each of its gaps."""

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
"""Changes that a range of commits is expected to have, a priori."""
WRONG = 0.003
"""The chance that a session says nothing of its commit: a neighbour woke up for all of it."""
EXACT_WRONG = 1e-6
"""The same of a count on which all workers agree."""
LEAST = 0.25
"""Smaller steps than this share of the whole change are not looked for."""
ALIKE = 0.05
"""Commits of one level may differ by this share of the whole change: the layout of their code."""
_EXACT_DF = 1000.0
_STEPS = 20
_MOST_LEVELS = 600
_BEYOND = 0.25


@dataclass(frozen=True, slots=True)
class Answer:
    """A session's answer: how far the commit at ``position`` is from the one at ``base``, mostly 0.

    ``se`` is ``change``'s standard error with ``df`` degrees of freedom; 0 for what is exact.
    """

    position: int
    change: float
    se: float
    df: float
    rounds: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed after some answers.

    ``positions`` are those measured, 0 first. ``changed`` has for each gap between two neighbours
    the probability that the level changed in it; ``levels`` and ``spreads`` the mean and standard
    deviation of the level at each position.
    """

    positions: tuple[int, ...]
    changed: tuple[float, ...]
    levels: tuple[float, ...]
    spreads: tuple[float, ...]


def believe(length: int, answers: Sequence[Answer], scale: float) -> Beliefs:
    """Return the posterior of a history of ``length`` commits; ``scale`` is the whole change.

    Notes
    -----
    Probabilistic bisection (Horstein 1963, IEEE Trans. Inf. Theory 9:136-143; Waeber, Frazier &
    Henderson 2013, SIAM J. Control Optim. 51:2261-2279) keeps a posterior over places, which each
    answer multiplies by its likelihood. Theirs is a yes or no that is right with a known
    probability. Here it is a measured change, and its likelihood Student's t around the level
    (mixed with ``WRONG`` of a uniform one), so that a clear answer counts for more than a faint
    one. There may be several changes: the level is a Markov chain along the commits, on a grid,
    which jumps with the probability ``EXPECTED`` ÷ ``length`` a commit to any level at least
    ``LEAST`` away. An answer of two neighbours among the measured commits is of their difference;
    of two others it is passed over. Forward and backward sums (Rabiner 1989, Proc. IEEE
    77:257-286) over the measured commits are exact.
    """
    import numpy as np

    grid = _grid(answers, scale)
    step = float(grid[1] - grid[0])
    alike = max(ALIKE * scale, step)
    positions = (0, *sorted({one.position for one in answers}))
    seen = [np.ones(len(grid)) for _ in positions]
    seen[0] = (np.abs(grid) < step / 2.0).astype(float)
    between = [np.ones((len(grid), len(grid))) for _ in positions[1:]]
    for one in answers:
        place = positions.index(one.position)
        if one.base == 0:
            seen[place] *= _likelihood(grid, one, alike)
        elif positions[place - 1] == one.base:
            differences = grid[None, :] - grid[:, None]
            between[place - 1] *= _likelihood(differences, one, alike * math.sqrt(2.0))
    far = (np.abs(grid[:, None] - grid[None, :]) >= LEAST * scale - 1e-9 * scale).astype(float)
    jump = far / far.sum(axis=1, keepdims=True)
    stays = [
        math.exp(-EXPECTED * (after - before) / length) for before, after in pairwise(positions)
    ]
    jumps = [
        (1.0 - stay) * jump * likelihood for stay, likelihood in zip(stays, between, strict=True)
    ]
    moves = [
        stay * np.diag(np.diag(likelihood)) + jumped
        for stay, likelihood, jumped in zip(stays, between, jumps, strict=True)
    ]
    forward, backward = [_normal(seen[0])], [np.ones(len(grid))]
    for move, likelihood in zip(moves, seen[1:], strict=True):
        forward.append(_normal((forward[-1] @ move) * likelihood))
    for move, likelihood in zip(reversed(moves), reversed(seen[1:]), strict=True):
        backward.insert(0, _normal(move @ (likelihood * backward[0])))
    changed = []
    for gap, (move, jumped) in enumerate(zip(moves, jumps, strict=True)):
        after = seen[gap + 1] * backward[gap + 1]
        changed.append(float(forward[gap] @ jumped @ after) / float(forward[gap] @ move @ after))
    chances = [_normal(one * other) for one, other in zip(forward, backward, strict=True)]
    levels = [float(chance @ grid) for chance in chances]
    spreads = [
        math.sqrt(max(0.0, float(chance @ (grid - level) ** 2)))
        for chance, level in zip(chances, levels, strict=True)
    ]
    return Beliefs(positions, tuple(changed), tuple(levels), tuple(spreads))


def _grid(answers: Sequence[Answer], scale: float) -> Array:
    """Return levels around all that was seen, good's among them, coarser where those lie far."""
    import numpy as np

    changes = (0.0, *(one.change for one in answers))
    low, high = min(changes) - _BEYOND * scale, max(changes) + _BEYOND * scale
    step = max(scale / _STEPS, (high - low) / _MOST_LEVELS)
    return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)


def _likelihood(grid: Array, answer: Answer, least_se: float) -> Array:
    import numpy as np

    df, wrong = (answer.df, WRONG) if answer.se > 0.0 else (_EXACT_DF, EXACT_WRONG)
    width = math.hypot(answer.se, least_se)
    constant = math.exp(special.gammaln((df + 1.0) / 2.0) - special.gammaln(df / 2.0))
    z = (answer.change - grid) / width
    density = constant / math.sqrt(df * math.pi) / width * (1.0 + z**2 / df) ** (-(df + 1.0) / 2.0)
    uniform = wrong / float(grid.max() - grid.min())
    mixed: Array = np.asarray((1.0 - wrong) * density + uniform)
    return mixed


def _normal(values: Array) -> Array:
    normal: Array = values / values.sum()
    return normal
