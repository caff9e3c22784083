"""Noise models: what identical code is seen to take, as logarithms of workers' values.

A worker's value is the case's true one, plus what the machine does to both workers of a round
alike, plus the worker's own luck. A worker that is measured alone has the former for luck too,
and shares its session's luck with all of that session's workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

Rng = np.random.Generator
Array = np.ndarray
Own = Callable[[Rng, tuple[int, ...]], Array]
Shared = Callable[[Rng, int, int], tuple[Array, Array]]
"""(rng, cases, rounds) to what base's and head's workers meet, by case and round."""
Within = Callable[[Rng, int, int], tuple[Array, Array]]
"""The same by case, round and burst."""

GAP = float(np.log(1.10))
WIDE_GAP = float(np.log(1.60))
"""Two states of a process lie so far apart."""
ROUND_LUCK = 0.015
SESSION_LUCK = 0.01
LAYOUT_LUCK = 0.01
BURSTS = 8
"""A side has so many bursts a round."""
_CENTRAL = 0.99


@dataclass(frozen=True, slots=True)
class Seen:
    """Log values of a session's rounds: by case and round, and by burst where a model has them."""

    base: Array
    head: Array
    base_bursts: Array | None = None
    head_bursts: Array | None = None

    @property
    def log_ratios(self) -> Array:
        """Rounds' log ratios: of the bursts side by side, where there are any."""
        if self.base_bursts is None or self.head_bursts is None:
            return self.head - self.base
        return np.median(self.head_bursts - self.base_bursts, axis=-1)

    def at(self, side: int, case: int, place: int) -> float:
        return float((self.head if side else self.base)[case, place])

    def bursts_at(self, side: int, case: int, place: int) -> Array | None:
        bursts = self.head_bursts if side else self.base_bursts
        return None if bursts is None else bursts[case, place]


@dataclass(frozen=True, slots=True)
class Model:
    """One noise model. ``own`` is one worker's luck; ``shared`` what a round's two workers meet.

    ``head_own`` is head's workers' where it differs; ``offset`` is then the mean of the log ratio
    that identical work shows. ``layout`` is the spread of what all workers of one side have in
    common for as long as a session lasts. ``between`` is what the workers of one side have in
    common that come from one fork server. ``within`` is what bursts meet; they are passed on
    where ``side_by_side`` is set, and a worker's value is their median (of all its samples, where
    its bursts have alike many).
    """

    name: str
    own: Own
    shared: Shared
    session_luck: float = SESSION_LUCK
    head_own: Own | None = None
    offset: float = 0.0
    layout: float = 0.0
    between: Own | None = None
    within: Within | None = None
    side_by_side: bool = True

    def together(self, rng: Rng, cases: int, rounds: int) -> Seen:
        """Return one session of rounds."""
        before, after = self.shared(rng, cases, rounds)
        shape = (cases, rounds)
        base = before + self.own(rng, shape) + self._layout(rng, cases)
        head = after + (self.head_own or self.own)(rng, shape) + self._layout(rng, cases)
        if self.within is None:
            return Seen(base, head)
        one, other = self.within(rng, cases, rounds)
        one, other = one + base[..., None], other + head[..., None]
        values = np.median(one, axis=-1), np.median(other, axis=-1)
        return Seen(*values, one, other) if self.side_by_side else Seen(*values)

    def of_servers(self, rng: Rng, cases: int, servers: int) -> tuple[Array, Array] | None:
        """Return what each fork server's workers of base, and of head, have in common, or None."""
        if self.between is None:
            return None
        shape = (cases, servers)
        return self.between(rng, shape), self.between(rng, shape)

    def alone(self, rng: Rng, cases: int, workers: int, *, side: str = "base") -> Array:
        """Return one session's log values by case and worker."""
        luck = rng.normal(0.0, self.session_luck, (cases, 1)) if self.session_luck else 0.0
        seen, _ = self.shared(rng, cases, workers)
        own = self.head_own if side == "head" and self.head_own else self.own
        values = luck + seen + own(rng, (cases, workers)) + self._layout(rng, cases)
        if self.between is not None:
            values += self.between(rng, (cases, workers))
        if self.within is None:
            return values
        return values + np.median(self.within(rng, cases, workers)[0], axis=-1)

    def spread(self) -> float:
        """Return the standard deviation of the middle 99 % of rounds' log ratios.

        Of all of them it would be that of the few far out, and t with 2 df has none.
        """
        ratios = self.together(np.random.default_rng(6), 1000, 20).log_ratios
        tail = (1.0 - _CENTRAL) / 2.0
        lo, hi = np.quantile(ratios, (tail, 1.0 - tail))
        return float(np.std(ratios[(lo <= ratios) & (ratios <= hi)]))

    def _layout(self, rng: Rng, cases: int) -> Array | float:
        return rng.normal(0.0, self.layout, (cases, 1)) if self.layout else 0.0


def gaussian(spread: float) -> Own:
    """Return normal luck that gives log ratios of a round the standard deviation ``spread``."""
    return lambda rng, shape: rng.normal(0.0, spread / np.sqrt(2.0), shape)


def following(phi: float, spread: float) -> Own:
    """Return luck whose log ratios follow each other from round to round: AR(1) with ``phi``."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> Array:
        values = gaussian(spread)(rng, shape)
        for index in range(1, shape[-1]):
            values[..., index] *= np.sqrt(1.0 - phi**2)
            values[..., index] += phi * values[..., index - 1]
        return values

    return draw


def bimodal(slow: float, gap: float = GAP, spread: float = 0.003) -> Own:
    """Return a process that is in its slow state with the probability ``slow``."""
    return lambda rng, shape: gap * (rng.random(shape) < slow) + rng.normal(0.0, spread, shape)


def heavy_tailed(df: float) -> Own:
    """Return Student's t, its middle as wide as a normal spread of 0.35 % a worker."""
    return lambda rng, shape: 0.0035 * rng.standard_t(df, shape)


def disturbed(rng: Rng, shape: tuple[int, ...]) -> Array:
    """One worker in twenty takes 30 % longer, so one round in ten has such a worker."""
    return np.log1p(0.30 * (rng.random(shape) < 0.05)) + rng.normal(0.0, 0.005, shape)


def coarse_clock(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Values in steps of 1 %: many are the same."""
    return np.log1p(np.round(rng.normal(0.0, 0.005, shape), 2))


def rounds_luck(rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """The machine's state, the same for both workers of a round."""
    luck = rng.normal(0.0, ROUND_LUCK, (cases, rounds))
    return luck, luck


def steady(_: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """A machine that never changes."""
    return np.zeros((cases, rounds)), np.zeros((cases, rounds))


def drifting(rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """1 % slower with each round; a worker is as far on as its place in the round.

    Half a round lies between the sides, as where both don't fit at once; who goes first
    alternates.
    """
    number = np.arange(rounds)
    luck, _ = rounds_luck(rng, cases, rounds)
    return luck + 0.01 * (number + 0.5 * (number % 2)), luck + 0.01 * (
        number + 0.5 * (1 - number % 2)
    )


def stepping(rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """10 % slower from somewhere in the session on; that round's sides meet it in part."""
    luck, _ = rounds_luck(rng, cases, rounds)
    at = rng.uniform(0.2 * rounds, 0.8 * rounds, (cases, 1))
    number = np.arange(rounds)
    first = rng.random((cases, 1)) < 0.5

    def after(start: Array) -> Array:
        return luck + GAP * np.clip(number + start + 0.5 - at, 0.0, 0.5) / 0.5

    return after(np.where(first, 0.0, 0.5)), after(np.where(first, 0.5, 0.0))


def busy(rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """A machine whose speed changes within a round, met by bursts in the order A B B A.

    AR(1) from burst to burst with 0.9, of 2 %; a drift through the round of 3 % up or down; in
    every third round a neighbour that makes a stretch of it 15 % slower; and 0.5 % of each burst.
    """
    slots = 2 * BURSTS
    shape = (cases, rounds, slots)
    phi, spread = 0.9, 0.02
    machine = rng.normal(0.0, spread, shape)
    for slot in range(1, slots):
        machine[..., slot] *= np.sqrt(1.0 - phi**2)
        machine[..., slot] += phi * machine[..., slot - 1]
    place = np.arange(slots)
    slope = rng.normal(0.0, 0.03, (cases, rounds, 1))
    starts, ends = np.sort(rng.uniform(0.0, slots, (2, cases, rounds, 1)), axis=0)
    woken = (rng.random((cases, rounds, 1)) < 1.0 / 3.0) & (starts <= place) & (place < ends)
    seen = machine + slope * (place / slots - 0.5) + np.log(1.15) * woken
    seen += rng.normal(0.0, 0.005, shape)
    first = [slot for slot in range(slots) if slot % 4 in {0, 3}]
    second = [slot for slot in range(slots) if slot % 4 in {1, 2}]
    odd = (np.arange(rounds) % 2 == 0)[:, None]
    one, other = seen[..., first], seen[..., second]
    return np.where(odd, one, other), np.where(odd, other, one)


def new_mode(share: float, change: float) -> Model:
    """Return a head of which a ``share`` of processes is slower by ``change``, and base is not."""
    gap = float(np.log1p(change))
    return Model(
        f"head: {share:.0%} of processes {change:.0%} slower".replace("%", " %"),
        gaussian(0.003 * float(np.sqrt(2.0))),
        rounds_luck,
        head_own=bimodal(share, gap),
        offset=share * gap,
    )


_NORMAL = Model("spread 0.7 %", gaussian(0.007), rounds_luck)
MODELS: tuple[Model, ...] = (
    _NORMAL,
    Model("spread 2 %", gaussian(0.02), rounds_luck),
    Model("bimodal, half slow", bimodal(0.5), rounds_luck),
    Model("bimodal, fifth slow", bimodal(0.2), rounds_luck),
    Model("bimodal 60 %, half slow", bimodal(0.5, WIDE_GAP), rounds_luck),
    Model("bimodal 60 %, fifth slow", bimodal(0.2, WIDE_GAP), rounds_luck),
    Model("fork servers differ as rounds do", gaussian(0.02), rounds_luck, between=gaussian(0.02)),
    Model("serial 0.3", following(0.3, 0.02), rounds_luck),
    Model("serial 0.6", following(0.6, 0.02), rounds_luck),
    replace(_NORMAL, name="drift", shared=drifting),
    replace(_NORMAL, name="step", shared=stepping),
    Model("heavy tails, t2", heavy_tailed(2.0), rounds_luck),
    Model("one round in ten disturbed", disturbed, rounds_luck),
    Model("coarse clock", coarse_clock, steady),
    replace(_NORMAL, name="sessions 3 % apart", session_luck=0.03),
    replace(_NORMAL, name="bursts", within=busy),
    replace(_NORMAL, name="layout, 1 % a side", layout=LAYOUT_LUCK),
    Model("workers 1 %, days 0.5 %", gaussian(0.01 * 2**0.5), steady, session_luck=0.005 / 2**0.5),
    new_mode(0.2, 0.10),
    new_mode(0.3, 0.20),
    new_mode(0.2, 1.00),
)
"""docs/results/README.md describes each of them."""
