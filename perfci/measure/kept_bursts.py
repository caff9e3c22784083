"""Kept bursts: all rounds of a session in one file, from which its decisions can be made again.

The file is gzipped MessagePack of one ``KeptSession``. It is small enough to be passed on: a round
takes about 2 kB, because each burst is reduced to its median, its mean and its run delay. The file
doesn't name the machine, or any of its folders.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import msgspec

from perfci.errors import DamagedFile
from perfci.files import read_regular, require_writable, write_lines
from perfci.measure.round import RoundSide
from perfci.model.case import Case
from perfci.model.measuring import MeasureSettings, WorkerOutput
from perfci.model.run import Environment
from perfci.stats.quantile import median
from perfci.verdict.sampled_comparisons import samples_by_burst
from perfci.version import VERSION

SCHEMA = "perfci.bursts/1"
SUFFIX = ".bursts"
_CALLS, _ROUNDS_WITH_CALLS = 100, 3
"""Number of single calls that are kept of a worker, and of a case's first rounds that keep them."""
_MOST_BYTES = 512 << 20
"""Bytes of the largest session that is read, unpacked."""
_BITS = 26
"""Bits that are kept of a value's mantissa. More would be noise, which doesn't compress."""


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """A block of bursts, as in ``WorkerBlock``. ``started_ns`` counts from the first block."""

    started_ns: int
    bursts: int
    samples: int
    lead_in: int
    set_aside: str = ""


@dataclass(frozen=True, slots=True)
class KeptWorker:
    """One worker: its output, and all its bursts, the ``excluded`` ones as well.

    ``half_ns`` and ``mean_half_ns`` have each burst's median and mean in half nanoseconds, as the
    difference from the burst before. ``delay_ns`` has each burst's run delay, or is empty if all
    are zero. ``excluded`` are the positions of excluded bursts. ``calls_ns`` are the first recorded
    calls. Only a case's first rounds keep them.
    """

    output: WorkerOutput
    blocks: tuple[KeptBlock, ...]
    half_ns: tuple[int, ...]
    mean_half_ns: tuple[int, ...]
    delay_ns: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    calls_ns: tuple[int, ...] = ()

    @property
    def medians_s(self) -> tuple[float, ...]:
        """The median call of each burst in s."""
        return tuple(total / 2e9 for total in itertools.accumulate(self.half_ns))


@dataclass(frozen=True, slots=True)
class KeptRound:
    """A round of the case at the position ``case``, with the worker of each side by its name.

    The worker of the side ``first`` started first, and began the first block. Then both began a
    block in turn. The round began ``began_s`` after the session and took ``took_s``. ``load`` is
    the machine's load average of the last minute, at the round's end.
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

    def require_writable(self) -> None:
        """Raise OSError if the file can't be written."""
        require_writable(self.path)

    def add(self, case: Case, measured: Sequence[RoundSide], began_s: float, took_s: float) -> None:
        """Keep a round, given its sides in starting order. If one of them failed, keep nothing."""
        outputs = [side.result for side in measured if isinstance(side.result, WorkerOutput)]
        if len(outputs) < len(measured):
            return
        self.cases.setdefault(case.id, case)
        self.rounds.append(
            KeptRound(
                case=list(self.cases).index(case.id),
                round=outputs[0].round,
                first=measured[0].side,
                began_s=round(began_s, 3),
                took_s=round(took_s, 3),
                load=round(os.getloadavg()[0], 2),
                workers={
                    output.side: _worker(side, output)
                    for side, output in zip(measured, outputs, strict=True)
                },
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


def read_kept(path: Path) -> KeptSession:
    """Return the session that was kept in ``path``. Raises DamagedFile for any other file."""
    try:
        with gzip.open(BytesIO(read_regular(path))) as file:
            packed = file.read(_MOST_BYTES)  # a larger session is cut off, and so not decodable
        session = msgspec.msgpack.decode(packed, type=KeptSession)
    except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
        raise DamagedFile(
            "damaged-bursts",
            f"{path} has no bursts that were kept: {error}",
            "Name a file that `perfci compare --keep-bursts` wrote.",
        ) from error
    if session.schema != SCHEMA:
        raise DamagedFile(
            "damaged-bursts",
            f"{path} is of schema {session.schema}; this perfci reads {SCHEMA}",
            "Read it with the version of perfci that wrote it.",
        )
    return session


def _worker(side: RoundSide, output: WorkerOutput) -> KeptWorker:
    raw, bursts = side.measurement, side.bursts
    if raw is None:
        raise ValueError(f"{output.case}: a side with an output has a measurement")
    samples = samples_by_burst(raw.samples_ns, side.blocks)
    delays = [round(delay * 1e9) for block in side.blocks for delay in block.run_delay]
    calls = itertools.islice(itertools.chain.from_iterable(samples), _CALLS)
    began = side.blocks[0].started if side.blocks else 0.0
    return KeptWorker(
        output=_compact(output),
        blocks=tuple(
            KeptBlock(
                round((block.started - began) * 1e9),
                block.bursts,
                block.samples,
                block.lead_in,
                block.set_aside,
            )
            for block in side.blocks
        ),
        half_ns=_steps(median(burst) for burst in samples),
        mean_half_ns=_steps(math.fsum(burst) / len(burst) for burst in samples),
        delay_ns=tuple(delays) if any(delays) else (),
        excluded=tuple(at for at, middle in enumerate(bursts) if middle is None),
        calls_ns=tuple(round(call * 1e9) for call in calls)
        if output.round <= _ROUNDS_WITH_CALLS
        else (),
    )


def _steps(values_s: Iterable[float]) -> tuple[int, ...]:
    """Return the times in half nanoseconds, each as the difference from the one before."""
    half_ns = [0, *(round(value * 2e9) for value in values_s)]
    return tuple(after - before for before, after in itertools.pairwise(half_ns))


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
