"""The metrics: a module for each family of them, which is all it takes to add one.

A module (or what an entry point of the group ``perfci.metrics`` names) has ``METRICS``: each
``Metric``, with its default policy, and what it is in words. It may have what else ``Family``
names. ``PLACE`` orders perfci's own in reports; others' come after them.

Standard library only, and torch inside of what needs it: workers import all of them.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from perfci.errors import Unusable, UsageError
from perfci.model.metric import Metric, why_unfit
from perfci.model.worker import GraphEvent, Measurement, WorkerOutput, WorkOrder
from perfci.plugins import (
    broken_entry_point,
    broken_plugin,
    built_in_modules,
    entry_points_of,
    load_plugin,
)

if TYPE_CHECKING:
    from perfci.metrics.ranks import Steps
    from perfci.model.finding import Finding
    from perfci.model.report import Explanation

GROUP = "perfci.metrics"
T = TypeVar("T")

# In the worker: what a collector is given, and what it gives.


class Device(Protocol):
    """What metrics ask of a device, beside what bursts do (``perfci.worker.devices``)."""

    def missing(self) -> Mapping[str, str]:
        """Return why it has no such metric, by metric."""

    def reset_peaks(self) -> None:
        """Reset the memory peaks: those of warm calls are measured without set-up."""

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
    def plain(self) -> Callable[[], Any] | None:
        """One call as eager makes it, where that is known."""

    @property
    def device(self) -> str:
        """The torch device that it was put on, or nothing."""

    @property
    def metrics(self) -> Sequence[Any]:
        """The benchmark's own metrics."""

    @property
    def remarks(self) -> Callable[[], Mapping[str, Finding]]:
        """What to know beside metrics, by metric."""

    @property
    def observer(self) -> Observer | None:
        """What sees its calls, if anything does."""

    @property
    def ranks(self) -> Ranks | None:
        """What leads the processes that its calls are made of, where they are."""


class Observer(Protocol):
    """What work sees of its own calls beside their time: values of perfci's own metrics."""

    def begin(self) -> None:
        """Forget the calls so far: the bursts are next."""

    def reading(self) -> Reading:
        """Return what the calls since were like."""


class Ranks(Protocol):
    """What leads the ranks of a process group."""

    def begin(self) -> None:
        """Let them know that they are warm: the bursts are next."""

    def peaks(self) -> Sequence[Mapping[str, float]]:
        """Return the most memory of each in a few more calls, by metric."""

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return what ``count`` more calls of each are like."""


@dataclass(slots=True)
class Scene:
    """What a collector may know of its worker. Times in s.

    ``collect`` frees what calls left in reference cycles; ``compiled`` says whether torch.compile
    had a part in what ran so far, whoever called it. From the end of set-up on there is ``work``;
    from the first call on a ``device``, or ``why_no_device``, and the time of the ``imports`` and
    of the whole ``start``; from the end of the warm-up on ``call_s``, a call's time, ``once``,
    which makes one call to its end, ``samples_bytes``, the memory that perfci's own samples take,
    and ``calls``, how many the bursts made so far.
    """

    order: WorkOrder
    collect: Callable[[], None]
    work: Work = field(init=False)
    compiled: Callable[[], bool] = lambda: False
    device: Device | None = None
    why_no_device: str = ""
    imports: float = 0.0
    start: float = 0.0
    call_s: float = 0.0
    once: Callable[[], None] = lambda: None
    samples_bytes: Callable[[], int] = lambda: 0
    calls: Callable[[], int] = lambda: 0

    def why_not(self, metric: str) -> str:
        """Return why there is no device that gives ``metric``; nothing where there is one."""
        return self.device.missing().get(metric, "") if self.device else self.why_no_device


@dataclass(frozen=True, slots=True)
class Reading:
    """What a hook found: values in base units, why others are missing, and what to say.

    ``remarks`` are what to know beside metrics, by metric: codes of ``finding.OF_WORKERS``.
    ``bursts`` are for ``reduce`` alone: of a metric that bursts side by side are compared by, the
    median of each burst in turn, None for one that was excluded. ``calls`` are for observers alone:
    the times in s that each call since ``begin`` had in a metric, from which all that is made.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    events: tuple[GraphEvent, ...] = ()
    warnings: tuple[str, ...] = ()
    bursts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    remarks: Mapping[str, Finding] = field(default_factory=dict)
    calls: Mapping[str, Sequence[float]] = field(default_factory=dict)


NOTHING = Reading()


class Collector:
    """What a family measures in a worker. Each worker has a new one; a hook is called once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def before_setup(self) -> None:
        """The benchmark's file is imported, and set-up is next."""

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
    own clock. ``observed`` has bursts, likewise, of what the work's observer saw of each call, by
    metric. ``energy`` is what the card took for a call in J: NaN where that isn't known, None where
    there is no card.
    """

    measurement: Measurement
    cold_cache: bool
    bursts: Sequence[Sequence[float]]
    samples: Sequence[float]
    device_bursts: Sequence[Sequence[float]] = ()
    device_samples: Sequence[float] = ()
    observed: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    energy: float | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A case some of whose metrics regressed, and the workers of both sides."""

    case: str
    regressed: tuple[str, ...]
    base: Sequence[WorkerOutput]
    head: Sequence[WorkerOutput]

    def because(
        self, metric: str, kind: str, text: str, file: str = "", line: int = 0
    ) -> Explanation:
        """Return an explanation of what one of the metrics did."""
        from perfci.model.report import Explanation

        return Explanation(self.case, metric, kind, text, file, line)


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
    values of a worker's samples; ``explain``, which says why a metric regressed. perfci's own may
    have ``ruling``, which says where the numbers of its metrics ``RULED`` don't count, given both
    sides' workers. ``distribution`` is whose it is, empty for perfci's own.
    """

    name: str
    metrics: tuple[Metric, ...]
    about: Mapping[str, str]
    collector: type[Collector] = Collector
    reduce: Reduce = lambda _: NOTHING
    explain: Explain = lambda _: ()
    ruling: Rule = lambda *_: None
    ruled: tuple[str, ...] = ()
    distribution: str = ""

    def ask(self, what: str, hook: Callable[[], T]) -> T:
        """Return what a hook gives. UsageError, by its distribution's name, for a broken one."""
        try:
            return hook()
        except Unusable:
            raise
        except Exception as error:
            if not self.distribution:
                raise
            raise self._broken(f"{what} ended in {type(error).__name__}: {error}") from error

    def read(self, what: str, hook: Callable[[], Reading]) -> Reading:
        """Return what a hook found, as ``ask``; a value that isn't finite is missing."""
        reading = self.ask(what, hook)
        if not self.distribution:
            return reading
        names = {metric.name for metric in self.metrics}
        if not isinstance(reading, Reading):
            raise self._broken(f"{what} gave {repr(reading)[:80]}, which is no Reading")
        if (
            strange := {
                *(*reading.values, *reading.missing, *reading.bursts, *reading.calls),
            }
            - names
        ):
            raise self._broken(f"{what} gave {sorted(map(str, strange))}, none of its metrics")
        values = self.ask(what, lambda: {name: float(one) for name, one in reading.values.items()})
        odd = {name: f"it was {one}" for name, one in values.items() if not math.isfinite(one)}
        return replace(
            reading,
            values={name: one for name, one in values.items() if name not in odd},
            missing={**reading.missing, **odd},
        )

    def _broken(self, what: str) -> UsageError:
        return broken_plugin(f"the metrics `{self.name}` of", self.distribution, what)


def families() -> tuple[Family, ...]:
    """Return the families in the order of reports. UsageError for another's that is broken."""
    return _REGISTRY.families()


def registered() -> dict[str, str]:
    """Return the modules that other distributions add, with the distributions' names."""
    return {one.name: one.distribution for one in families() if one.distribution}


def use(others: Mapping[str, str]) -> None:
    """Take these modules of others', as ``registered`` found them, and look for no more.

    For a worker: looking for entry points takes up to 0.1 s.
    """
    own = list(_own())
    for name, distribution in others.items():
        own.append(_family(importlib.import_module(name), distribution))
    _REGISTRY.take(own)


def _own() -> Iterator[Family]:
    modules = [module for _, module in built_in_modules(sys.modules[__name__])]
    return map(_family, sorted(modules, key=lambda module: getattr(module, "PLACE", math.inf)))


def _with_others() -> Iterator[Family]:
    owners: dict[str, str] = {}
    for family in _own():
        owners |= dict.fromkeys(family.about, "perfci")
        yield family
    for point in entry_points_of(GROUP):
        distribution = point.dist.name if point.dist else point.value
        family = _family(load_plugin(point, _wrong), distribution)
        for name in family.about:
            if name in owners:
                raise broken_entry_point(point, f"{owners[name]} has a metric `{name}`")
            owners[name] = distribution
        yield family


def _family(module: Any, distribution: str = "") -> Family:
    optional = {"collector": "COLLECTOR", "reduce": "reduce", "explain": "explain"}
    if not distribution:
        optional |= {"ruling": "ruling", "ruled": "RULED"}
    return Family(
        name=module.__name__,
        metrics=tuple(module.METRICS),
        about={metric.name: text for metric, text in module.METRICS.items()},
        distribution=distribution,
        **{key: vars(module)[name] for key, name in optional.items() if name in vars(module)},
    )


def _wrong(module: Any) -> str:
    return next(_wrongs(module), "")


def _wrongs(module: Any) -> Iterator[str]:
    """Yield what is wrong with another distribution's module."""
    if not isinstance(module, ModuleType):
        yield "it is no module"
    elif not isinstance(getattr(module, "METRICS", None), Mapping) or not module.METRICS:
        yield "its `METRICS` maps no metric to what it is"
    else:
        for metric, text in module.METRICS.items():
            if not isinstance(metric, Metric) or not isinstance(text, str):
                yield "its `METRICS` maps something else than a Metric to words"
            elif wrong := why_unfit(metric):
                yield f"its metric {metric.name!r}: {wrong}"
        collector = getattr(module, "COLLECTOR", Collector)
        if not (isinstance(collector, type) and issubclass(collector, Collector)):
            yield "its `COLLECTOR` is no subclass of perfci.metrics.Collector"
        for hook in ("reduce", "explain"):
            if not callable(getattr(module, hook, len)):
                yield f"its `{hook}` can't be called"


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


class _Registry(Mapping[str, Metric]):
    """The metrics by name, in the order of reports; found when they are first asked for."""

    def __init__(self) -> None:
        self._families: tuple[Family, ...] = ()
        self._by_name: dict[str, Metric] = {}

    def take(self, found: Iterable[Family]) -> None:
        """Have these families and no others."""
        self._families = tuple(found)
        self._by_name = {one.name: one for family in self._families for one in family.metrics}

    def families(self) -> tuple[Family, ...]:
        """Return the families."""
        if not self._families:
            self.take(_with_others())
        return self._families

    def __getitem__(self, name: str) -> Metric:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def _found(self) -> dict[str, Metric]:
        self.families()
        return self._by_name


__all__ = [
    "METRICS",
    "NOTHING",
    "Collector",
    "Device",
    "Family",
    "Metric",
    "Moved",
    "Observer",
    "Ranks",
    "Reading",
    "Ruling",
    "Scene",
    "Warm",
    "Work",
    "families",
    "registered",
    "ruled",
    "rulings",
    "use",
]
_REGISTRY = _Registry()
METRICS: Mapping[str, Metric] = _REGISTRY
