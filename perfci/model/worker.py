"""The input of a worker (``WorkOrder``) and its answers. Workers import this.

A worker that measures answers a ``Measurement``, one that looks for cases a ``Discovery``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from perfci.finding import Finding
from perfci.model import inherited
from perfci.model.case import Case, Failure, Gate, Metric

MOST_FIRST_CALLS = 40
"""Most first calls of a worker whose latencies are kept, one by one."""
WRONG_CODE = "wrong_code"
"""The ``Failure.kind`` of a case whose worker ran code that isn't its side's."""
UNLIKE_FRESH = "unlike_fresh"
"""``Failure.kind`` of a worker whose fork server left it in another state than a fresh process."""


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """Work of one worker. The parent sends it as JSON on the worker's order pipe. Times in s.

    Where and what: ``root`` is the side's tree. It is the worker's directory, and the side's
    benchmark files lie in it. ``benchmark_file`` is an absolute path.
    ``case`` is the id of the case to measure. The worker finds the case by its id, so that the
    values of axes needn't be JSON. An empty ``case`` asks for discovery of ``benchmark_files``.

    How it is measured: ``cold_cache``: the compile cache is empty. ``accuracy``: the output is
    compared with its reference, the outputs of ranks with each other, and operations are counted.
    ``growth``: the growth of memory per call is measured. The metrics of ``accuracy`` and
    ``growth`` are exact: later rounds leave them out if the workers agree. ``inject`` makes the
    work worse on purpose, by shares of its cost.

    Forks: with ``fork_socket`` (a descriptor) the process is a fork server: it imports
    ``benchmark_file`` and forks workers, which get orders of their own. With ``preload`` it
    imports instead these modules, then those of ``compiler``, and no code of the side.

    Discovery looks for installed copies of the distributions that ``project`` names (normalised) or
    ``checkout`` holds. ``devices`` and ``metrics`` are what discovery found: kinds of device, and
    modules of metrics with their distributions. With ``instruments`` nothing is measured: these
    instruments look inside the case. ``changed`` has the lines by which the side's files differ
    from the other side's, by file relative to ``root``. For suites of other tools,
    ``suite_files`` are all benchmark files of the side, ``pytest_args`` the configuration's, and
    ``commit`` is the side's.
    """

    root: str
    python_path: tuple[str, ...]
    benchmark_files: tuple[str, ...] = ()
    benchmark_file: str = ""
    case: str = ""
    side: str = "head"
    seed: int = 0
    cold_cache: bool = False
    accuracy: bool = True
    growth: bool = True
    warmup_s: float = 2.0
    fork_socket: int = -1
    preload: tuple[str, ...] | None = None
    compiler: tuple[str, ...] = ()
    inject: Mapping[str, float] = field(default_factory=dict)
    project: tuple[str, ...] = ()
    checkout: str = ""
    devices: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    instruments: tuple[str, ...] = ()
    changed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    suite_files: tuple[str, ...] = ()
    pytest_args: tuple[str, ...] = ()
    commit: str = ""


@dataclass(frozen=True, slots=True)
class GraphEvent:
    """A graph break or a recompile, with its reason. ``file`` is relative to the side's tree."""

    kind: str
    reason: str
    file: str = ""
    line: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class OutputPart:
    """The output of a call, or what lies at one of its keys.

    ``dtypes`` has the number of its floating tensors by dtype, each with the dtype's eps.
    ``distance`` is the relative distance from a float64 reference. ``sketch`` and ``reference`` are
    sums of both that any two workers can compare.
    """

    dtypes: Mapping[str, tuple[int, float]]
    distance: float = 0.0
    sketch: tuple[float, ...] = ()
    reference: tuple[float, ...] = ()

    @property
    def eps(self) -> float:
        """Return the eps of the coarsest dtype."""
        return max(eps for _, eps in self.dtypes.values())


TEST_SKIPPED = "test_skipped"
"""The kind of failure of a case that its suite skipped as it ran."""
REPLACED = "measured again"
"""Why a block is excluded if later blocks of its round replace it."""
THROTTLED = "throttled by a processor quota"
"""Why a delayed burst is excluded if a cgroup's quota was used up during its block."""


@dataclass(frozen=True, slots=True)
class WorkerBlock:
    """One worker's part of a block: the bursts that one message ordered. Times in s.

    Each burst made one of ``lead_ins`` calls that were not recorded, then ``samples`` calls that
    were, then ``timed_apart`` calls for the device's own time. If ``timed_apart`` is 0, the
    recorded calls gave the device's time. ``leading`` is the time of all lead-in calls on the core,
    and ``duration`` that of all bursts' other calls. ``run_delay`` is for each burst how long the
    kernel kept the worker off its core. ``set_aside`` is the reason why the block was
    excluded, or "". ``calls_before`` counts the calls made for other readings between the previous
    block and this one. ``throttled`` is how long a processor quota stopped threads meanwhile.
    ``collections`` is how often Python collected garbage in the bursts' calls, and 1 more a burst
    if the work chose when Python collects.
    """

    bursts: int
    samples: int
    started: float
    duration: float
    run_delay: tuple[float, ...] = ()
    lead_ins: tuple[int, ...] = ()
    leading: float = 0.0
    set_aside: str = ""
    timed_apart: int = 0
    calls_before: int = 0
    throttled: float = 0.0
    collections: int = 0

    @property
    def calls(self) -> int:
        """Return the number of calls of the work."""
        return sum(self.lead_ins) + self.bursts * (self.samples + self.timed_apart)

    @property
    def device_samples(self) -> int:
        """Return the number of device times per burst, where there is a device."""
        return self.timed_apart or self.samples


@dataclass(frozen=True, slots=True)
class ResultsFile:
    """A file of results that one run of a command wrote.

    Each character of ``content`` stands for one byte. ``format`` is the importer's name, empty if
    the content shows which importer fits. ``threshold`` and ``gate`` apply to the metrics made from
    the file's results.
    """

    name: str
    content: str
    format: str
    threshold: float
    gate: Gate


@dataclass(frozen=True, slots=True)
class Reading:
    """Values of metrics in base units, and what else is known about them.

    A hook of a collector returns one. Those of all hooks together are a part of a ``Measurement``,
    and with the values that the parent computes, of a ``WorkerOutput``.

    ``missing`` maps an absent metric to the reason, and ``remarks`` a metric to a finding on its
    value, with a code of ``words.OF_WORKERS``. Only ``reduce`` gives ``bursts``, for metrics
    whose bursts are compared side by side: the median of each burst in order, or None for an
    excluded burst. ``output`` has the parts of a call's output, by path.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    graph_events: tuple[GraphEvent, ...] = ()
    warnings: tuple[str, ...] = ()
    bursts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    remarks: Mapping[str, Finding] = field(default_factory=dict)
    output: Mapping[str, OutputPart] = field(default_factory=dict)

    def joined(self, other: Reading) -> Self:
        """Return both readings as one. ``other`` comes last, and replaces values of one name."""
        joined: dict[str, Any] = {}
        for name, theirs in inherited(type(other), other).items():
            ours = getattr(self, name)
            joined[name] = {**ours, **theirs} if isinstance(ours, Mapping) else ours + theirs
        return replace(self, **joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReading(Reading):
    """The reading of a whole worker. Times in s.

    ``phases`` are the phases of cold start: interpreter, harness, imports, setup, first_call, and
    compiler if it was imported before them. ``first_calls`` are the latencies of the first calls,
    warm-up included. ``extra_metrics`` are the benchmark's own, and those of other distributions.
    ``generated_code`` is a digest of the code that Inductor generated into an empty compile cache,
    or empty.
    """

    phases: Mapping[str, float] = field(default_factory=dict)
    first_calls: tuple[float, ...] = ()
    extra_metrics: tuple[Metric, ...] = ()
    generated_code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(WorkerReading):
    """A worker's raw answer, which the parent reduces to a ``WorkerOutput``.

    ``samples_ns`` (and ``device_samples_ns`` if there is a device) has each block's samples as
    base64 of little-endian signed 64-bit integers. ``values`` holds the metrics that are not
    derived from samples. ``observed_ns`` maps a metric of observed time to the time that each call
    of the blocks spent in it, lead-in calls included; it is encoded like ``samples_ns``.
    ``results`` are files for the parent to read.
    """

    samples_ns: tuple[str, ...]
    blocks: tuple[WorkerBlock, ...]
    first_call_s: float
    device_samples_ns: tuple[str, ...] = ()
    items: float | None = None
    compiled: bool = False
    observed_ns: Mapping[str, str] = field(default_factory=dict)
    results: tuple[ResultsFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """An installed copy of one of the project's distributions.

    ``paths`` are its folders, which end in a slash, and its files outside these folders.
    """

    distribution: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileImports:
    """Effects of importing one benchmark file, or a list of modules, on its process.

    ``modules`` are other distributions' modules that the side's own code asked for, in order.
    ``environment`` lists the variables that were set (``NAME=value``) or removed (``NAME``).
    """

    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """Content of one side's benchmark files: cases, failed files, and the side's facts.

    ``copies`` are the project's distributions as installed in the side's Python. ``pythons`` are
    the folders of that Python. ``sources`` are other clones of the project's repository that this
    Python imports from. ``devices`` and ``metrics`` are modules that other distributions add:
    kinds of device, and metrics with the distributions' names. ``imports`` maps each benchmark file
    to the effects of its imports, ``modules`` each loaded module to its file. ``cards``
    are the UUIDs of the cards that torch sees.
    """

    cases: tuple[Case, ...]
    failures: tuple[Failure, ...]
    facts: Mapping[str, str]
    copies: tuple[Copy, ...] = ()
    pythons: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, FileImports] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    cards: tuple[str, ...] = ()
