"""The interface between a worker and the collectors of ``perfci.metrics``.

Standard library only: workers import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from perfci.finding import Explanation, Finding
from perfci.model.case import Metric
from perfci.model.worker import Measurement, Reading, ResultsFile, WorkOrder

if TYPE_CHECKING:
    from perfci.model.measuring import WorkerOutput


class Device(Protocol):
    """A device as metrics read it (``perfci.worker.devices``)."""

    def missing(self) -> Mapping[str, str]:
        """Return the metrics that the device lacks, each with the reason."""

    def reset_peaks(self) -> None:
        """Reset the memory peaks, so that the peaks of warm calls don't include set-up."""

    def peaks(self) -> Mapping[str, float]:
        """Return the peaks since ``reset_peaks``, in bytes: of live tensors, and of memory held."""

    def allocated(self) -> float:
        """Return the bytes that live tensors hold now."""


class Observer(Protocol):
    """An observer of the work's calls. It gives values of perfci's own metrics."""

    def begin(self) -> None:
        """Forget the calls so far: the bursts are next."""

    def reading(self) -> Reading:
        """Return the values of the calls since ``begin``."""


class Ranks(Protocol):
    """The ranks of a process group."""

    def begin(self) -> None:
        """Let the ranks know that they are warm: the bursts are next."""

    def peaks(self) -> Sequence[Mapping[str, float]]:
        """Return each rank's peaks of memory in a few more calls, by metric."""

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return each rank's steps in ``count`` more calls."""

    def outputs(self) -> Sequence[OutputSketch]:
        """Return a sketch of each rank's output of one more call."""


@dataclass(frozen=True, slots=True)
class OutputSketch:
    """A sketch of a rank's output. ``unsupported`` is the reason why it can't be compared.

    ``kind`` is a hash of all that has to be equal in all ranks. Floating values may differ a
    little: ``projections`` are their products with random signs, ``squared`` is the sum of their
    squares, and ``eps`` that of their coarsest dtype.
    """

    kind: str = ""
    projections: tuple[float, ...] = ()
    squared: float = 0.0
    eps: float = 0.0
    unsupported: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """Some steps of one rank, with times in s of one clock.

    ``collectives`` has the kind and the bytes of each collective. ``under_way`` has the begin and
    end of each, or of NCCL's kernels if there are any. ``computing`` is the same for everything
    else that ran. ``cores`` are the processor cores that the rank may run on.
    """

    count: int
    began: float
    ended: float
    collectives: tuple[tuple[str, float], ...]
    under_way: tuple[tuple[float, float], ...]
    cores: tuple[int, ...]
    computing: tuple[tuple[float, float], ...] = ()

    def waited(self) -> float:
        """Return for how long at least one collective was under way."""
        return self._covered(self.under_way)

    def exposed(self) -> float:
        """Return for how long collectives were under way and nothing else ran."""
        return self._covered((*self.under_way, *self.computing)) - self._covered(self.computing)

    def _covered(self, ranges: Sequence[tuple[float, float]]) -> float:
        total, until = 0.0, self.began
        for began, ended in sorted(ranges):
            last = min(ended, self.ended)
            total += max(0.0, last - max(began, until))
            until = max(until, last)
        return total

    def per_step(self, kind: str = "") -> tuple[float, float]:
        """Return the number and the bytes of a step's collectives, of one ``kind`` or of all."""
        sizes = [size for known, size in self.collectives if kind in {known, ""}]
        return len(sizes) / self.count, sum(sizes) / self.count


@dataclass(frozen=True, slots=True)
class ExtraMetric:
    """A metric of the benchmark's own. A worker calls ``measure`` once, after the bursts."""

    metric: Metric
    measure: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Work:
    """One call to measure and what is known about it.

    ``compiled`` tells whether torch.compile has a part in the call. ``device`` is a torch device
    string, or empty if only the outputs show the device. ``items`` is how many items one call
    handles. ``accuracy`` is called after the timing and returns (candidate outputs, float64
    reference outputs), or raises ValueError if there is no reference. ``metrics`` are the
    benchmark's own. ``observer`` collects other costs of calls. ``ranks`` leads the processes that
    make a call together. ``prepare`` runs before each call, untimed, and readies what it uses up.
    ``spared_s`` is the part of this set-up's time that later workers of the session don't need.
    ``most_calls`` are the most that the bursts may make, 0 for any number. Work with such a limit
    has warmed up in its set-up.
    """

    call: Callable[[], Any]
    compiled: bool = False
    device: str = ""
    items: float | None = None
    accuracy: Callable[[], tuple[Any, Any]] | None = None
    metrics: tuple[ExtraMetric, ...] = ()
    observer: Observer | None = None
    ranks: Ranks | None = None
    prepare: Callable[[], object] | None = None
    spared_s: float = 0.0
    most_calls: int = 0

    def prepared_call(self) -> Any:
        """Prepare a call, make it, and return its output."""
        if self.prepare:
            self.prepare()
        return self.call()


@dataclass(slots=True)
class Scene:
    """The worker as its collectors see it. Times in s.

    ``collect`` frees the reference cycles that calls left, and returns their number of objects.
    ``compiled`` tells whether torch.compile had a part in what ran so far, whatever called it.
    ``work`` is there once set-up has ended. The end of the first call sets ``device`` or
    ``why_no_device``, the time of the ``imports`` and of the whole ``start``, and
    ``peak_at_start``, the process's peak of memory until then. From the warm-up on there are:

    - ``once`` makes one call and waits for its end
    - ``samples_bytes``: the memory that perfci's own samples take
    - ``calls``: the number of calls that the bursts made so far
    - ``busy_share``: how busy other threads were between the bursts
    - ``call_s``: the time of a call and of its preparation, once the warm-up has ended
    """

    order: WorkOrder
    collect: Callable[[], int]
    work: Work = field(init=False)
    compiled: Callable[[], bool] = lambda: False
    device: Device | None = None
    why_no_device: str = ""
    imports: float = 0.0
    start: float = 0.0
    peak_at_start: int | None = None
    call_s: float = 0.0
    once: Callable[[], None] = lambda: None
    samples_bytes: Callable[[], int] = lambda: 0
    calls: Callable[[], int] = lambda: 0
    busy_share: Callable[[], float] = lambda: 0.0

    def missing_reason(self, metric: str) -> str:
        """Return why no device gives ``metric``, or an empty text if the device does."""
        return self.device.missing().get(metric, "") if self.device else self.why_no_device


@dataclass(frozen=True, slots=True)
class Observation(Reading):
    """The reading of an observer. ``calls`` are by metric the times in s of each call since
    ``begin``, from which the metric's value is computed. ``results`` are the files of results that
    these calls wrote.
    """

    calls: Mapping[str, Sequence[float]] = field(default_factory=dict)
    results: tuple[ResultsFile, ...] = ()


NOTHING = Reading()


class Collector:
    """The measuring part of a metric group.

    Each worker creates one collector per group, and calls each hook once, in the order below.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def before_setup(self) -> None:
        """The benchmark's file is imported, and set-up is next."""

    def set_up(self) -> None:
        """Set-up is done, and nothing was called yet."""

    def called(self, output: Any) -> None:
        """The first call has returned ``output``."""

    def warm(self) -> None:
        """Warm-up is done: the bursts are next."""

    def after_bursts(self) -> Reading:
        """The bursts are done, and the process is as it was in them."""
        return NOTHING

    def more_calls(self) -> Reading:
        """Make more calls of the work, or do anything else that would have disturbed the bursts."""
        return NOTHING

    def last(self) -> Reading:
        """The work will not be called again."""
        return NOTHING


@dataclass(frozen=True, slots=True)
class Warm:
    """A worker's warm calls, without the calls of excluded bursts. Times in s.

    ``bursts`` has the samples of each burst in turn. An excluded burst has no samples. ``samples``
    has the samples of all bursts, in ascending order. ``device_bursts`` and ``device_samples`` are
    the same by the device's own clock. ``observed`` has, by metric, what the work's observer saw of
    each call, in bursts as well.
    """

    measurement: Measurement
    cold_cache: bool
    bursts: Sequence[Sequence[float]]
    samples: Sequence[float]
    device_bursts: Sequence[Sequence[float]] = ()
    device_samples: Sequence[float] = ()
    observed: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MovedCase:
    """A case with regressed metrics, and the workers of both sides."""

    case: str
    regressed: tuple[str, ...]
    base: Sequence[WorkerOutput]
    head: Sequence[WorkerOutput]

    def because(
        self, metric: str, kind: str, text: str, file: str = "", line: int = 0
    ) -> Explanation:
        """Return an explanation of a regressed metric."""
        return Explanation(self.case, metric, kind, text, file, line)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A status of a metric that holds whatever its numbers are, with the reason.

    With a ``ratio``, head ÷ base, it holds only if that is beyond the metric's threshold.
    """

    status: Literal["regressed", "improved", "unchanged"]
    finding: Finding
    ratio: float | None = None
