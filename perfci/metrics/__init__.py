"""The metrics: a module for each family of them, which is all it takes to add one.

A module has ``METRICS``: each ``Metric``, with its default policy, and what it is in words. It may
have what else ``Family`` names. ``PLACE`` orders perfci's own in reports.

Standard library only, and torch inside of what needs it: workers import all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from perfci.model.metric import Metric
from perfci.model.worker import GraphEvent, Measurement, WorkerOutput, WorkOrder
from perfci.plugins import built_in

if TYPE_CHECKING:
    from perfci.model.finding import Finding
    from perfci.model.report import Explanation

# In the worker: what a collector is given, and what it gives.


class Device(Protocol):
    """What metrics ask of a device, beside what bursts do (``perfci.worker.devices``)."""

    def missing(self) -> Mapping[str, str]:
        """Return why it has no such metric, by metric."""

    def reset_peaks(self) -> None:
        """Start the memory peaks anew: warm calls are measured apart from set-up."""

    def peaks(self) -> Mapping[str, float]:
        """Return what the warm calls needed, and what the process held, in bytes."""

    def allocated(self) -> float:
        """Return the bytes that live tensors hold now."""


class Work(Protocol):
    """What the benchmark gave to be measured: ``perfci.api.work.Work``."""

    @property
    def call(self) -> Callable[[], Any]:
        """One call of it."""

    @property
    def compiled(self) -> bool:
        """Whether torch.compile has a part in it."""

    @property
    def accuracy(self) -> Callable[[], tuple[Any, Any]] | None:
        """Return the outputs, and those of a float64 reference."""

    @property
    def metrics(self) -> Sequence[Any]:
        """The benchmark's own metrics."""


@dataclass(slots=True)
class Scene:
    """What a collector may know of its worker. Times in s.

    ``collect`` frees what calls left in reference cycles. From the first call on there is a
    ``device``, or ``why_no_device``, and the time of the ``imports`` and of the whole ``start``;
    from the end of the warm-up on ``call_s``, a call's time, ``once``, which makes one call to its
    end, and ``samples_bytes``, the memory that perfci's own samples take.
    """

    order: WorkOrder
    work: Work
    collect: Callable[[], None]
    device: Device | None = None
    why_no_device: str = ""
    imports: float = 0.0
    start: float = 0.0
    call_s: float = 0.0
    once: Callable[[], None] = lambda: None
    samples_bytes: Callable[[], int] = lambda: 0

    def why_not(self, metric: str) -> str:
        """Return why there is no device that gives ``metric``; nothing where there is one."""
        return self.device.missing().get(metric, "") if self.device else self.why_no_device


@dataclass(frozen=True, slots=True)
class Reading:
    """What a hook found: values in base units, why others are missing, and what to say.

    ``bursts`` are for ``reduce`` alone: of a metric that bursts side by side are compared by, the
    median of each burst in turn, None for one that was excluded.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    events: tuple[GraphEvent, ...] = ()
    warnings: tuple[str, ...] = ()
    bursts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


NOTHING = Reading()


class Collector:
    """What a family measures in a worker. Each worker has a new one; a hook is called once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def set_up(self) -> None:
        """Set-up is done, and nothing was called yet."""

    def warm(self) -> None:
        """Warm-up is done: the bursts are next."""

    def after_bursts(self) -> Reading:
        """The bursts are done, and the process is as it was in them."""
        return NOTHING

    def more_calls(self) -> Reading:
        """Make more calls of the work, or what else would have disturbed the bursts."""
        return NOTHING

    def last(self) -> Reading:
        """The work will not be called again."""
        return NOTHING


# In the parent: what is made of what workers sent.


@dataclass(frozen=True, slots=True)
class Warm:
    """A worker's warm calls, without those of excluded bursts. Times in s.

    ``bursts`` has the samples of each burst in turn, none of an excluded one; ``samples`` has all
    of them, in ascending order; ``device_bursts`` and ``device_samples`` are those of the device's
    own clock. ``energy`` is what the card took during all bursts in J: NaN where that isn't known,
    None where there is no card.
    """

    measurement: Measurement
    cold_cache: bool
    bursts: Sequence[Sequence[float]]
    samples: Sequence[float]
    device_bursts: Sequence[Sequence[float]] = ()
    device_samples: Sequence[float] = ()
    energy: float | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A case some of whose metrics regressed, and the workers of both sides."""

    case: str
    regressed: tuple[str, ...]
    base: Sequence[WorkerOutput]
    head: Sequence[WorkerOutput]


@dataclass(frozen=True, slots=True)
class Ruling:
    """A status that holds whatever the numbers are, and why."""

    status: Literal["regressed", "improved"]
    finding: Finding


Reduce = Callable[[Warm], Reading]
Explain = Callable[[Moved], Iterable["Explanation"]]
Rule = Callable[[Sequence[WorkerOutput], Sequence[WorkerOutput]], Ruling | None]

# The registry.


@dataclass(frozen=True, slots=True)
class Family:
    """One module's metrics. ``about`` says what each is, by its name.

    What else a module may have: ``COLLECTOR``, the class of its collectors; ``reduce``, which makes
    values of a worker's samples; ``explain``, which says why a metric regressed; and ``ruling``,
    which says where the numbers of its metrics ``RULED`` don't count, given both sides' workers.
    """

    name: str
    metrics: tuple[Metric, ...]
    about: Mapping[str, str]
    collector: type[Collector] = Collector
    reduce: Reduce = lambda _: NOTHING
    explain: Explain = lambda _: ()
    ruling: Rule = lambda *_: None
    ruled: tuple[str, ...] = ()


@cache
def families() -> tuple[Family, ...]:
    """Return the families in the order of reports."""
    modules = [module for _, module in built_in(sys.modules[__name__])]
    return tuple(map(_family, sorted(modules, key=lambda module: module.PLACE)))


def _family(module: Any) -> Family:
    optional = {"collector": "COLLECTOR", "ruled": "RULED"}
    optional |= {name: name for name in ("reduce", "explain", "ruling")}
    return Family(
        name=module.__name__,
        metrics=tuple(module.METRICS),
        about={metric.name: text for metric, text in module.METRICS.items()},
        **{key: vars(module)[name] for key, name in optional.items() if name in vars(module)},
    )


def rulings(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> dict[str, Ruling]:
    """Return the rulings on these sides' workers, by metric."""
    return {
        name: ruling
        for family in families()
        if (ruling := family.ruling(base, head))
        for name in family.ruled
    }


def ruled() -> frozenset[str]:
    """Return the metrics that there may be a ruling on."""
    return frozenset(name for family in families() for name in family.ruled)


@cache
def _by_name() -> dict[str, Metric]:
    return {metric.name: metric for family in families() for metric in family.metrics}


class _Metrics(Mapping[str, Metric]):
    """The metrics by name, in the order of reports; found when they are first asked for."""

    def __getitem__(self, name: str) -> Metric:
        return _by_name()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_by_name())

    def __len__(self) -> int:
        return len(_by_name())


METRICS: Mapping[str, Metric] = _Metrics()
