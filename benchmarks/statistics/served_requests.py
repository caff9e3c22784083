"""Simulated servers: requests whose tokens meet the machine's slow moments, as workers see them.

What is made here are the times of tokens alone. From there on it is perfci's own code: the requests
of a call are gathered by ``Requests``, a worker's calls are reduced by ``reduce``, and both sides'
are compared burst by burst by ``side_by_side``, in the turns that ``turns`` plans.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.statistics.noise import Array, Rng
from perfci.api.serving.generation import arrivals
from perfci.measure.selection import BurstPlan, block_order, starting_order, turns
from perfci.metrics.serving import Request, Requests
from perfci.model.measuring import MeasureSettings, WorkerOutput
from perfci.model.worker import Measurement, WorkerBlock
from perfci.verdict.sampled_comparisons import reduce, side_by_side
from perfci.worker.bursts import encoded

PREFILL_S, GAP_S, TOKENS = 0.004, 0.001, 16
SIDES = ("base", "head")
_CELL_S, _CELLS = 0.001, 4096
"""The machine's speed is drawn for each ms of a round; what lasts longer meets it again."""
_WANDER_S = 0.1
_SETTINGS = MeasureSettings()


@dataclass(frozen=True, slots=True)
class Load:
    """Who asks: clients at once, or arrivals (``rate`` a second). ``objective``: for goodput."""

    name: str
    requests: int
    rate: float = 0.0
    first_within: float = 1.3
    """The objective's first token, in times of prefill; 1.1 times the usual between tokens."""

    @property
    def objective(self) -> dict[str, float]:
        """What a request of it may take, in s."""
        within_s = self.first_within * PREFILL_S
        return {"time_to_first_token": within_s, "inter_token_latency": 1.1 * GAP_S}


LOADS = (
    Load("one client", 1),
    Load("4 clients", 4, first_within=4.2),
    Load("open loop, 20 % busy", 16, rate=50.0, first_within=2.0),
    Load("open loop, 80 % busy", 16, rate=200.0, first_within=4.0),
)
"""A request waits for the prefill of those before it, as on one device; all decode at once."""


@dataclass(frozen=True, slots=True)
class Server:
    """How a server and its machine vary. Spreads are of logarithms.

    ``jitter`` is of each prefill and each token. ``own`` is of a worker, for prefill and decode
    apart; with the chance ``slow`` a worker decodes 10 % slower. ``layout`` is of all workers of an
    ancestor's side. ``stalls`` is the share of tokens that take five times as long, ``tail`` the
    degrees of freedom of prefill's jitter. The machine's speed wanders by ``wander`` within 0.1 s,
    and ``moments`` times a second it is slow for 20 ms or so: twice to four times, for all that
    runs then. ``lengths``: a request has 16 tokens in the mean, 1 to 64.
    """

    name: str
    jitter: float = 0.05
    own: float = 0.005
    slow: float = 0.0
    layout: float = 0.0
    stalls: float = 0.0
    tail: float = 0.0
    wander: float = 0.01
    moments: float = 0.0
    lengths: bool = False


SERVERS = (
    Server("calm"),
    Server("slow moments", moments=3.0),
    Server("busy machine", wander=0.10, moments=8.0, own=0.01),
    Server("workers differ", own=0.02, slow=0.5),
    Server("ancestors differ", layout=0.02),
    Server("heavy tails", stalls=0.02, tail=2.0),
    Server("lengths differ", lengths=True),
    Server("all of it", 0.10, 0.02, 0.2, 0.01, 0.01, 3.0, 0.05, 4.0, lengths=True),
)


@dataclass(frozen=True, slots=True)
class Luck:
    """What all workers of an ancestor have in common: by side, prefill's and decode's log."""

    base: Array
    head: Array

    @classmethod
    def drawn(cls, server: Server, rng: Rng) -> Luck:
        """Draw an ancestor's."""
        base, head = rng.normal(0.0, 1.0, (2, 2)) * server.layout
        return cls(base, head)


def both_sides(
    server: Server, load: Load, rng: Rng, case: str, number: int, ancestor: int, luck: Luck,
    slower: tuple[float, float] = (0.0, 0.0),
) -> tuple[WorkerOutput, WorkerOutput]:  # fmt: skip
    """Return one round's workers; head's prefill and decode are ``slower`` by these logs."""
    plan = _plan(load)
    calls = plan.blocks * plan.bursts * plan.calls
    machine = _machine(server, rng)
    workers = {}
    for side, common in zip(SIDES, (luck.base, luck.head), strict=True):
        own = rng.normal(0.0, 1.0, 2) * server.own
        own[1] += np.log(1.1) * (rng.random() < server.slow)
        logs = own + common + (slower if side == "head" else (0.0, 0.0))
        workers[side] = _Worker(server, load, rng, calls, logs)
    now = 0.0
    order = starting_order(SIDES, number)
    for block in range(plan.blocks):
        for _ in range(plan.bursts):
            for side in block_order(order, block):
                for _ in range(plan.calls):
                    now = workers[side].call(machine, now)
    made = [workers[side].output(plan, case, side, number, ancestor) for side in order]
    first, second = side_by_side(made, (plan.bursts,) * plan.blocks)
    return (first, second) if first.side == "base" else (second, first)


@cache
def _plan(load: Load) -> BurstPlan:
    """Return the turns of a round, as a session plans them by what a call usually takes."""
    due = _due(load)
    free = 0.0
    for at in due:
        free = max(at, free) + PREFILL_S
    return turns(free + (TOKENS - 1) * GAP_S, _SETTINGS.burst, _SETTINGS.round_time)


@cache
def _due(load: Load) -> tuple[float, ...]:
    return arrivals(load.rate, load.requests, 0) if load.rate else (0.0,) * load.requests


def _machine(server: Server, rng: Rng) -> Array:
    """Return by what the machine's speed multiplies what runs, by ms of a round."""
    step = np.exp(-_CELL_S / _WANDER_S)
    noise = rng.normal(0.0, server.wander * np.sqrt(1.0 - step**2), _CELLS)
    noise[0] = rng.normal(0.0, server.wander)
    logs = _following(noise, step) + rng.normal(0.0, 0.015)
    for _ in range(rng.poisson(server.moments * _CELLS * _CELL_S)):
        begin, lasts = rng.integers(_CELLS), 1 + int(rng.exponential(0.02 / _CELL_S))
        logs[begin : begin + lasts] += np.log(rng.uniform(2.0, 4.0))
    factors: Array = np.exp(logs)
    return factors


def _following(steps: Array, share: float) -> Array:
    from scipy.signal import lfilter

    found: Array = lfilter([1.0], [1.0, -share], steps)
    return found


class _Worker:
    """One side's worker of a round: its calls, made at their times."""

    def __init__(self, server: Server, load: Load, rng: Rng, calls: int, logs: Array) -> None:
        shape = (calls, load.requests)
        tokens = TOKENS
        self._lengths = np.full(shape, TOKENS)
        if server.lengths:
            self._lengths = np.clip(rng.geometric(1.0 / TOKENS, shape), 1, 4 * TOKENS)
            tokens = int(self._lengths.max())
        jitter = rng.standard_t(server.tail, shape) if server.tail else rng.normal(0.0, 1.0, shape)
        self._prefill = PREFILL_S * np.exp(np.clip(server.jitter * jitter, -1.0, 3.0) + logs[0])
        between = rng.normal(0.0, server.jitter, (*shape, tokens - 1)) + logs[1]
        if server.stalls:
            between += np.log(5.0) * (rng.random(between.shape) < server.stalls)
        self._gaps = GAP_S * np.exp(between)
        self._due = _due(load)
        self._requests = Requests(load.objective)
        self._took: list[float] = []

    def call(self, machine: Array, began: float) -> float:
        """Make the next call at ``began``; return when it has ended."""
        number = len(self._took)
        prefill, gaps, lengths = self._prefill[number], self._gaps[number], self._lengths[number]
        free = began
        firsts = []
        for after, usual in zip(self._due, prefill.tolist(), strict=True):
            start = max(began + after, free)
            free = start + usual * machine[int(start / _CELL_S) % _CELLS]
            firsts.append(free)
        first = np.array(firsts)[:, None]
        usually = first + np.cumsum(gaps, axis=1)
        met = machine[(usually / _CELL_S).astype(int) % _CELLS]
        later = np.concatenate([first, first + np.cumsum(gaps * met, axis=1)], axis=1).tolist()
        made = []
        for after, times, length in zip(self._due, later, lengths.tolist(), strict=True):
            tokens = array("d", times[:length])
            made.append(Request(began + after, tokens, tokens[-1]))
        ended = max(one.ended for one in made)
        self._requests.add(made, ended - began)
        self._took.append(ended - began)
        return float(ended)

    def output(
        self, plan: BurstPlan, case: str, side: str, number: int, ancestor: int
    ) -> WorkerOutput:
        """Return what the session makes of it."""
        reading = self._requests.reading()
        size = plan.bursts * plan.calls
        blocks = range(0, len(self._took), size)
        raw = Measurement(
            samples_ns=tuple(_in_ns(self._took[begin : begin + size]) for begin in blocks),
            blocks=tuple(
                WorkerBlock(
                    plan.bursts,
                    plan.calls,
                    0.0,
                    sum(self._took[begin : begin + size]),
                    run_delay=(0.0,) * plan.bursts,
                )
                for begin in blocks
            ),
            first_call_s=self._took[0],
            values=reading.values,
            missing=reading.missing,
            observed_ns={name: _in_ns(calls) for name, calls in reading.calls.items()},
        )
        return reduce(
            raw, case=case, side=side, round_number=number, cold_cache=False, ancestor=ancestor
        )


def _in_ns(seconds: Sequence[float]) -> str:
    return encoded(array("q", [int(one * 1e9) for one in seconds]))
