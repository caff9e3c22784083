"""What configuration says about measuring: how long, how often, and how quietly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

INJECTABLE = ("latency", "cold_start", "compile_time", "peak_host_memory")
MOST_INJECTED = 10.0
"""Of base: 1000 %."""


DECIDING_ROUNDS = 5
"""Fewer carry no interval and no verdict: rounds that agree by chance look like certainty.
With two, intervals of processes of two speeds hold in 86 % instead of 95; with four, 0.4 % of the
cases slower by twice the threshold pass for unchanged; with five 0.1 % (docs/statistics.md)."""

AGREEING_ROUNDS = 2
"""So many measure what is exact; where their workers agree, later rounds don't measure it again."""

DECIDING_ANCESTORS = 4
"""Rounds of fewer ancestors carry no interval and no verdict: docs/results/ancestors.md."""
ROUNDS_OF_AN_ANCESTOR = 2
"""Rounds of one case that come from one ancestor, after the least rounds, which have one each. See
docs/results/ancestors.md."""


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How rounds are measured. Times in s, memory in bytes.

    ``rounds`` is the least number of rounds of a case and ``max_rounds`` the most;
    ``compile_rounds`` of them start with an empty compile cache. ``budget`` bounds the whole
    session, ``timeout`` each step of a worker. A worker takes bursts of ``burst`` s until it
    has ``round_time`` s of them. ``threads``, ``cores`` and ``memory_limit`` 0 mean: as many
    as there are, chosen automatically, none. Without ``hints`` no why has any. With ``flush_l2``
    calls on a device find its cache without what the call before left there.

    No file can ask for the last two. ``inject`` makes head worse on purpose, by shares of
    ``INJECTABLE``. ``cold_start_rounds`` of a case's rounds measure cold start (None: the least
    rounds); in later ones both sides may start at once.
    """

    rounds: int = 5
    max_rounds: int = 20
    compile_rounds: int = 1
    budget: float = 600.0
    round_time: float = 0.3
    burst: float = 0.0025
    warmup: float = 2.0
    timeout: float = 300.0
    seed: int = 0
    threads: int = 0
    cores: int = 0
    memory_limit: int = 0
    hints: bool = True
    flush_l2: bool = False
    inject: Mapping[str, float] = field(default_factory=dict)
    cold_start_rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """The settings that keep a worker quiet (design 5.3), each of which can be switched off."""

    pin: bool = True
    malloc: bool = True
    hash_seed: bool = True
    gc: bool = True
    threads: bool = True
    vec_isa: bool = True
    fork: bool = True
