"""Kept bursts: all rounds of a session in one file, from which its decisions can be made again.

The file is gzipped MessagePack of one ``KeptSession``. It is small enough to be passed on, because
each worker's bursts are reduced to its output. The file doesn't name the machine, or any of its
folders. ``benchmarks/corpus`` reads it.
"""

from __future__ import annotations

import gzip
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from perfci.config.keys import MeasureSettings
from perfci.files import write_lines
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput, WorkerResult
from perfci.model.run import Environment
from perfci.version import VERSION

SCHEMA = "perfci.bursts/1"
SUFFIX = ".bursts"
_BITS = 26
"""Bits that are kept of a value's mantissa. More would be noise, which doesn't compress."""


@dataclass(frozen=True, slots=True)
class KeptWorker:
    """One worker: what its bursts and calls were reduced to."""

    output: WorkerOutput


@dataclass(frozen=True, slots=True)
class KeptRound:
    """A round of the case at the position ``case``, with the worker of each side by its name.

    The worker of the side ``first`` started first. The round began ``began_s`` after the session
    and took ``took_s``. ``load`` is the machine's load average of the last minute, at its end.
    """

    case: int
    round: int
    first: str
    began_s: float
    took_s: float
    load: float
    workers: Mapping[str, KeptWorker]


@dataclass(frozen=True, slots=True)
class KeptSession:
    """All rounds of one session. ``base`` and ``head`` are commits; ``facts`` the environment's."""

    perfci: str
    created_at: str
    base: str
    head: str
    facts: Mapping[str, str]
    settings: MeasureSettings
    cases: tuple[Case, ...]
    rounds: tuple[KeptRound, ...]
    wall_s: float
    schema: str = SCHEMA


@dataclass(slots=True)
class BurstKeeper:
    """Keeps the rounds of a session, and writes them to the file ``path`` at its end."""

    path: Path
    created_at: str
    cases: dict[str, Case] = field(default_factory=dict)
    rounds: list[KeptRound] = field(default_factory=list)

    @classmethod
    def within(cls, folder: Path, created_at: str) -> BurstKeeper:
        """Return a keeper with a file of its own in ``folder``."""
        moment = created_at.replace(":", "").partition("+")[0]
        return cls(folder / f"{moment}-{secrets.token_hex(3)}{SUFFIX}", created_at)

    def add(
        self, case: Case, results: Sequence[WorkerResult | None], began_s: float, took_s: float
    ) -> None:
        """Keep a round, given its results in starting order. If one is a failure, keep nothing."""
        outputs = [result for result in results if isinstance(result, WorkerOutput)]
        if len(outputs) < len(results):
            return
        self.cases.setdefault(case.id, case)
        self.rounds.append(
            KeptRound(
                case=list(self.cases).index(case.id),
                round=outputs[0].round,
                first=outputs[0].side,
                began_s=round(began_s, 3),
                took_s=round(took_s, 3),
                load=round(os.getloadavg()[0], 2),
                workers={output.side: KeptWorker(_compact(output)) for output in outputs},
            )
        )

    def write(
        self,
        commits: Mapping[str, str],
        environment: Environment,
        settings: MeasureSettings,
        wall_s: float,
    ) -> None:
        """Write the file. Raises OSError if it can't be written."""
        session = KeptSession(
            perfci=VERSION,
            created_at=self.created_at,
            base=commits["base"],
            head=commits["head"],
            facts=environment.facts,
            settings=settings,
            cases=tuple(self.cases.values()),
            rounds=tuple(self.rounds),
            wall_s=round(wall_s, 3),
        )
        packed = msgspec.msgpack.encode(session)
        write_lines(self.path, (gzip.compress(packed, mtime=0),))


def _compact(output: WorkerOutput) -> WorkerOutput:
    """Return the output without what no comparison uses, and with shorter numbers."""
    return replace(
        output,
        values=_shorter(output.values),
        quantiles=tuple(map(_short, output.quantiles)),
        phases=_shorter(output.phases),
        with_delayed=_shorter(output.with_delayed),
        graph_events=(),
        warnings=(),
        first_calls=(),
    )


def _shorter(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _short(value) for name, value in values.items()}


def _short(value: float) -> float:
    """Return ``value`` with a mantissa of ``_BITS`` bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS)
