"""Input of a worker (``WorkOrder``), output of a worker, and the settings of measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Failure, Gate, Metric
from perfci.model.finding import Finding

MOST_FIRST_CALLS = 40
"""Most first calls of a worker whose latencies are kept, one by one."""
UNLIKE_FRESH = "unlike_fresh"
"""``Failure.kind`` of a worker whose ancestor left it in another state than a fresh process."""
INJECTABLE = ("latency", "cold_start", "compile_time", "peak_host_memory")
"""Metrics that can be made worse on purpose, to test the gate."""
MOST_INJECTED = 10.0
"""Largest share of base by which such a metric can be made worse: 1000 %."""
DECIDING_ROUNDS = 5
"""Fewest rounds for an interval and a verdict: fewer may agree by chance, and look like certainty.
If processes run at two speeds, intervals of two rounds hold in 86 % instead of 95. Of cases slower
by twice the threshold, 0.4 % pass for unchanged with four rounds, 0.1 % with five
(docs/statistics.md)."""
AGREEING_ROUNDS = 2
"""Rounds that measure exact metrics. If their workers agree, later rounds don't measure them."""
ROUNDS_OF_AN_ANCESTOR = 2
"""Rounds of one case that share an ancestor. In the least number of rounds, which come first, each
has an ancestor of its own. See docs/results/ancestors.md."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A benchmark without a benchmark file: the configuration names a saved model and its inputs.

    Paths are absolute. A pickled model needs ``allow_pickle``, because unpickling runs code.
    """

    name: str
    model_path: str
    inputs_path: str
    modes: tuple[str, ...] = ("eager",)
    items: float | None = None
    allow_pickle: bool = False


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """Work of one worker. The parent sends it as JSON on the worker's order pipe. Times in s.

    Where and what: ``root`` is the side's tree. It is the worker's directory, and the side's
    benchmark files lie in it. ``benchmark_file`` is an absolute path, empty for a saved model.
    ``case`` is the id of the case to measure. The worker finds the case by its id, so that the
    values of axes needn't be JSON. An empty ``case`` asks for discovery of ``benchmark_files``.

    How it is measured: ``cold_cache``: the compile cache is empty. ``accuracy``: the output is
    compared with its reference, the outputs of ranks with each other, and operations are counted.
    ``growth``: the growth of memory per call is measured. The metrics of ``accuracy`` and
    ``growth`` are exact: later rounds leave them out if the workers agree. ``flush_l2``: a device's
    cache is flushed before each call. ``cold_start``: False if the worker's start was disturbed, so
    that its cold start isn't reported. ``inject`` makes the work worse on purpose, by shares of its
    cost.

    Forks: with ``fork_socket`` (a descriptor) the process is a starter: it imports
    ``benchmark_file`` and forks workers, which get orders of their own. With ``preload`` it is an
    ancestor: it imports these modules, then those of ``compiler``, and no code of the side.
    ``fresh_state`` is torch's state after the imports of a fresh process, which a forked worker's
    has to equal. If empty, nothing is compared.

    Discovery looks for installed copies of the distributions that ``project`` names (normalised) or
    ``checkout`` holds. ``devices`` and ``metrics`` are what discovery found: kinds of device, and
    modules of metrics with their distributions. With ``instruments`` nothing is measured: these
    instruments look inside the case.
    """

    root: str
    python_path: tuple[str, ...]
    benchmark_files: tuple[str, ...] = ()
    benchmark_file: str = ""
    case: str = ""
    side: str = "head"
    saved: tuple[SavedModel, ...] = ()
    threads: int = 1
    seed: int = 0
    cold_cache: bool = False
    accuracy: bool = True
    growth: bool = True
    warmup_s: float = 2.0
    flush_l2: bool = False
    fork_socket: int = -1
    preload: tuple[str, ...] | None = None
    compiler: tuple[str, ...] = ()
    fresh_state: Mapping[str, str] = field(default_factory=dict)
    cold_start: bool = True
    inject: Mapping[str, float] = field(default_factory=dict)
    project: tuple[str, ...] = ()
    checkout: str = ""
    devices: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    instruments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphEvent:
    """A graph break or a recompile, with its reason. ``file`` is relative to the side's tree."""

    kind: str
    reason: str
    file: str = ""
    line: int = 0
    count: int = 1


REPLACED = "measured again in long turns"
"""Why a block is excluded if later blocks of its round replace it."""


@dataclass(frozen=True, slots=True)
class WorkerBlock:
    """One worker's part of a block: the bursts that one message ordered. Times in s.

    Each burst made ``lead_in`` calls that were not recorded, then ``samples`` calls that were, then
    ``timed_apart`` calls for the device's own time. If ``timed_apart`` is 0, the recorded calls
    gave the device's time. ``duration`` is the time of all bursts. ``run_delay`` is for each burst
    how long the kernel kept the worker off its core. ``set_aside`` is the reason why the block was
    excluded, or "". ``calls_before`` counts the calls made for other readings between the previous
    block and this one.
    """

    bursts: int
    samples: int
    started: float
    duration: float
    run_delay: tuple[float, ...] = ()
    lead_in: int = 0
    set_aside: str = ""
    timed_apart: int = 0
    calls_before: int = 0

    @property
    def calls(self) -> int:
        """Return the number of calls of the work."""
        return self.bursts * (self.lead_in + self.samples + self.timed_apart)

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
class Measurement:
    """A worker's raw answer, which the parent reduces to a ``WorkerOutput``.

    ``samples_ns`` (and ``device_samples_ns`` if there is a device) has each block's samples as
    base64 of little-endian signed 64-bit integers. ``values`` holds the metrics that are not
    derived from samples, in base units. ``missing`` maps an absent metric to the reason, and
    ``remarks`` a metric to a remark on its value. ``observed_ns`` maps a metric of observed time
    to the time that each call of the blocks spent in it, lead-in calls included; it is encoded like
    ``samples_ns``. ``results`` are files for the parent to read. ``peak_flops`` is the work's.
    """

    samples_ns: tuple[str, ...]
    blocks: tuple[WorkerBlock, ...]
    first_call_s: float
    values: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)
    device_samples_ns: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    items: float | None = None
    peak_flops: float = 0.0
    compiled: bool = False
    graph_events: tuple[GraphEvent, ...] = ()
    warnings: tuple[str, ...] = ()
    extra_metrics: tuple[Metric, ...] = ()
    remarks: Mapping[str, Finding] = field(default_factory=dict)
    first_calls: tuple[float, ...] = ()
    observed_ns: Mapping[str, str] = field(default_factory=dict)
    results: tuple[ResultsFile, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerOutput:
    """One worker's measurement of one case: each metric reduced to one value.

    ``values`` holds metrics in base units. ``missing`` maps an absent metric to the reason, and
    ``remarks`` a metric to a remark on its value. ``first_calls`` are the latencies of the first
    calls in s, warm-up included.
    ``quantiles`` are the latency in s at 0, 1, 5, 25, 50, 75, 95, 99, 100 %.
    ``phases`` are the phases of cold start in s: interpreter, harness, imports, setup, first_call,
    and compiler if it was imported before them.
    ``bursts`` has by metric the median of each burst, in order, and None for an excluded burst.
    ``beside`` is made from it for the metrics that both workers of a round have bursts of: the log
    of this worker's value ÷ the other worker's, over bursts that ran side by side. ``bursts`` is
    emptied then.
    ``bursts_measured`` counts all bursts, and ``bursts_set_aside`` those of them that were
    excluded. ``bursts_disturbed`` were disturbed but kept, because most of the worker's bursts
    were disturbed. ``disturbance`` is the commonest reason for either.
    ``bursts_delayed`` counts the bursts that the kernel kept off their core, excluded or not.
    ``with_delayed`` has the metrics whose values differ if delayed bursts are kept. Baselines don't
    store ``bursts``, ``bursts_delayed`` and ``with_delayed``.
    ``ancestor`` is the number, within the session, of the process that both workers of the round
    were forked from. It is 0 if they have no common ancestor.
    """

    case: str
    side: str
    round: int
    values: Mapping[str, float]
    samples: int
    missing: Mapping[str, str] = field(default_factory=dict)
    quantiles: tuple[float, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    graph_events: tuple[GraphEvent, ...] = ()
    bursts_set_aside: int = 0
    bursts_disturbed: int = 0
    disturbance: str = ""
    bursts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    extra_metrics: tuple[Metric, ...] = ()
    ancestor: int = 0
    beside: Mapping[str, float] = field(default_factory=dict)
    bursts_measured: int = 0
    remarks: Mapping[str, Finding] = field(default_factory=dict)
    first_calls: tuple[float, ...] = ()
    bursts_delayed: int = 0
    with_delayed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """A worker that ended without an output."""

    round: int
    failure: Failure


WorkerResult = WorkerOutput | WorkerFailure


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Settings of measuring. Times are in s, memory in bytes.

    ``rounds`` is the least number of rounds of a case and ``max_rounds`` the most.
    ``compile_rounds`` of them start with an empty compile cache. ``budget`` bounds the whole
    session, ``timeout`` each step of a worker. A worker takes bursts of ``burst`` s until it
    has ``round_time`` s of them. ``threads`` 0: as many as there are. ``cores`` 0: chosen
    automatically. ``memory_limit`` 0: no limit. Without ``hints`` explanations have no hints.
    With ``flush_l2`` a device's cache is flushed before each call. ``residency`` is ``together`` if
    both sides' workers of a round live at once, and ``alternate`` if one lives after the other.

    The last two fields can't be configured. ``inject`` makes ``INJECTABLE`` metrics of head worse
    on purpose, by shares. The first ``cold_start_rounds`` rounds of a case measure cold start
    (None: the first ``rounds``). In later rounds both sides may start at once.
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
    residency: str = "together"
    inject: Mapping[str, float] = field(default_factory=dict)
    cold_start_rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """The settings that keep a worker quiet (design 5.3). Each can be switched off by itself.

    ``pin``: workers have cores of their own.
    ``malloc``: glibc keeps its pages, so that large tensors don't page-fault on each call.
    ``hash_seed``: ``PYTHONHASHSEED`` is 0.
    ``gc``: Python's garbage is collected before each burst, not in it.
    ``threads``: the number of threads is set (``OMP_NUM_THREADS`` and so on).
    ``vec_isa``: Inductor is spared a test of the CPU's vector instructions.
    ``fork``: workers are forked from a process that has done their imports.
    """

    pin: bool = True
    malloc: bool = True
    hash_seed: bool = True
    gc: bool = True
    threads: bool = True
    vec_isa: bool = True
    fork: bool = True
