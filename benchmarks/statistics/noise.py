"""Noise models: what identical code is seen to take, as logarithms of workers' values.

A worker's value is the case's true one, plus what the machine does to both workers of a round
alike, plus the worker's own luck. A worker that is measured alone has the former for luck too,
and shares its session's luck with all of that session's workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator
Array = np.ndarray
Own = Callable[[Rng, tuple[int, ...]], Array]
Shared = Callable[[Rng, int, int], tuple[Array, Array]]

GAP = float(np.log(1.10))
"""Two states of a process lie so far apart."""
ROUND_LUCK = 0.015
SESSION_LUCK = 0.01


@dataclass(frozen=True, slots=True)
class Model:
    """One noise model. ``own`` is one worker's luck; ``shared`` what a round's two workers meet.

    ``symmetric``: log ratios are distributed alike on both sides of their centre, and nothing
    but chance bounds the coverage. ``paired_spread`` is the standard deviation of a round's log
    ratio, for the table.
    """

    name: str
    says: str
    own: Own
    shared: Shared
    symmetric: bool = True
    session_luck: float = SESSION_LUCK

    def together(self, rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
        """Return base's and head's log values by case and round."""
        before, after = self.shared(rng, cases, rounds)
        return before + self.own(rng, (cases, rounds)), after + self.own(rng, (cases, rounds))

    def alone(self, rng: Rng, cases: int, workers: int) -> Array:
        """Return one session's log values by case and worker."""
        luck = rng.normal(0.0, self.session_luck, (cases, 1)) if self.session_luck else 0.0
        seen, _ = self.shared(rng, cases, workers)
        return luck + seen + self.own(rng, (cases, workers))


def gaussian(spread: float) -> Own:
    """Return normal luck that gives log ratios of a round the standard deviation ``spread``."""
    return lambda rng, shape: rng.normal(0.0, spread / np.sqrt(2.0), shape)


def autocorrelated(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Medians of 64 samples that follow each other: AR(1) with 0.9, each of 2 % spread."""
    phi, spread, count = 0.9, 0.02, 64
    samples = np.empty((*shape, count))
    steps = rng.normal(0.0, spread * np.sqrt(1.0 - phi**2), (*shape, count))
    samples[..., 0] = rng.normal(0.0, spread, shape)
    for index in range(1, count):
        samples[..., index] = phi * samples[..., index - 1] + steps[..., index]
    return np.median(samples, axis=-1) + rng.normal(0.0, 0.003, shape)


def bimodal(slow: float) -> Own:
    """Return a process that is in its slow state with the probability ``slow``."""
    return lambda rng, shape: GAP * (rng.random(shape) < slow) + rng.normal(0.0, 0.003, shape)


def heavy_tailed(df: float) -> Own:
    """Return Student's t, its middle as wide as a normal spread of 0.35 % a worker."""
    return lambda rng, shape: 0.0035 * rng.standard_t(df, shape)


def woken_tenant(rng: Rng, shape: tuple[int, ...]) -> Array:
    """One worker in twenty takes 30 % longer: somebody else woke up."""
    return np.log1p(0.30 * (rng.random(shape) < 0.05)) + rng.normal(0.0, 0.005, shape)


def no_luck(_: Rng, shape: tuple[int, ...]) -> Array:
    """Every worker is alike to the last digit."""
    return np.zeros(shape)


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


MODELS: tuple[Model, ...] = (
    Model("spread 0.3 %", "normal, 0.3 % a pair", gaussian(0.003), rounds_luck),
    Model("spread 0.7 %", "normal, 0.7 % a pair", gaussian(0.007), rounds_luck),
    Model("spread 2 %", "normal, 2 % a pair", gaussian(0.02), rounds_luck),
    Model("autocorrelated", "medians of 64 AR(1) samples", autocorrelated, rounds_luck),
    Model("bimodal, half slow", "10 % slower with p = 0.5", bimodal(0.5), rounds_luck),
    Model("bimodal, fifth slow", "10 % slower with p = 0.2", bimodal(0.2), rounds_luck),
    Model("bimodal, steady", "p = 0.5, no other luck of rounds", bimodal(0.5), steady),
    Model("drift", "1 % slower each round", gaussian(0.007), drifting),
    Model("step", "10 % slower within the session", gaussian(0.007), stepping),
    Model("heavy tails, t3", "Student's t, 3 df", heavy_tailed(3.0), rounds_luck),
    Model("heavy tails, t2", "Student's t, 2 df", heavy_tailed(2.0), rounds_luck),
    Model("woken tenant", "one worker in 20 takes +30 %", woken_tenant, rounds_luck),
    Model("coarse clock", "values in steps of 1 %", coarse_clock, steady),
    Model("zero variance", "all alike", no_luck, steady, session_luck=0.0),
    Model(
        "sessions 3 % apart",
        "0.7 % a pair; sessions differ by 3 %",
        gaussian(0.007),
        rounds_luck,
        session_luck=0.03,
    ),
)
