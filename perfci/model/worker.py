"""Input of a worker (``WorkOrder``), its output, and the settings of measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Failure, Gate, Metric
from perfci.model.finding import Finding

MOST_FIRST_CALLS = 40
"""Number of a worker's first calls whose latencies are kept one by one."""
UNLIKE_FRESH = "unlike_fresh"
"""The kind of failure of a worker that its ancestor made unlike a fresh process."""
INJECTABLE = ("latency", "cold_start", "compile_time", "peak_host_memory")
MOST_INJECTED = 10.0
"""Largest share of base by which something can be made worse: 1000 %."""
DECIDING_ROUNDS = 5
"""Fewer rounds give no interval and no verdict: rounds that agree by chance look like certainty.
With two, intervals of processes of two speeds hold in 86 % instead of 95; with four, 0.4 % of the
cases slower by twice the threshold pass for unchanged; with five 0.1 % (docs/statistics.md)."""
AGREEING_ROUNDS = 2
"""Rounds that measure exact metrics. Where their workers agree, later rounds leave these out."""
ROUNDS_OF_AN_ANCESTOR = 2
"""Rounds of one case that share an ancestor. The first, least number of rounds have one each. See
docs/results/ancestors.md."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A benchmark by configuration alone: a saved model and its inputs.

    Paths are absolute. ``kind`` is ``exported`` (a torch.export program), ``torchscript``, or
    ``pickle`` (needs ``allow_pickle``: unpickling runs code).
    """

    name: str
    model_path: str
    inputs_path: str
    modes: tuple[str, ...] = ("eager",)
    items: float | None = None
    allow_pickle: bool = False


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """Work of one worker. Sent as JSON on its order pipe.

    Where and what: ``root`` is the side's tree (the worker's directory), in which its benchmark
    files lie. ``benchmark_file`` is an absolute path, empty for a saved model. ``case`` empty asks
    for discovery of ``benchmark_files``; the worker finds its case again by its id, so that axis
    values need not be JSON.

    How it is measured: ``cold_cache``: the compile cache is empty. ``accuracy``: the output is
    compared with its reference, the ranks' with each other, and operations are counted.
    ``growth``: the growth of memory per call is measured. Both are exact and left out of later
    rounds where workers agree. With ``flush_l2`` a device's cache is flushed before each call.

    If it forks: with ``fork_socket`` (a descriptor) the process is a starter: it imports
    ``benchmark_file`` and forks workers that have orders of their own. With ``preload`` it is an
    ancestor: it imports these modules, then those of ``compiler``, and no code of the side.
    ``fresh_state`` is torch's state after the imports in a fresh process, where it is compared.
    ``cold_start``: False where the worker's start was disturbed: cold start is then not reported.
    ``inject`` makes the work worse on purpose, by shares of its cost.

    Discovery looks for installed copies of the distributions that ``project`` names (normalised) or
    ``checkout`` holds. ``devices`` are the kinds of device that it found, ``metrics`` the modules
    of metrics, with their distributions. With ``instruments`` nothing is measured: they look
    inside of the case. Times in s.
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
    """A graph break or recompile: why, and where (``file`` relative to the side's tree)."""

    kind: str
    reason: str
    file: str = ""
    line: int = 0
    count: int = 1


REPLACED = "measured again in long turns"
"""Why a block is excluded that later ones of its round replace."""


@dataclass(frozen=True, slots=True)
class WorkerBlock:
    """One worker's part of a block: the bursts that one message ordered. Times in s.

    Each burst made ``lead_in`` calls that were not recorded, then ``samples`` calls that were, then
    ``timed_apart`` calls for the device's own time. If that is 0, the recorded calls gave it.
    ``duration`` is the time of all bursts, ``run_delay`` for each burst how long the kernel kept
    the worker off its core. ``set_aside`` gives the reason why the block was excluded, or "".
    ``calls_before`` were made between the block before and this one, for other readings.
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
    """A file of results that one run of a command wrote; ``content``'s characters are its bytes.

    ``format`` is the importer's name, empty where the content shows it. ``threshold`` and ``gate``
    are of the metrics that stand for its results.
    """

    name: str
    content: str
    format: str
    threshold: float
    gate: Gate


@dataclass(frozen=True, slots=True)
class Measurement:
    """A worker's raw answer, which the parent reduces to a ``WorkerOutput``.

    ``samples_ns`` (and ``device_samples_ns``, where there is a device) have each block's samples as
    base64 of little-endian signed 64-bit integers. ``values`` holds the metrics that are not
    derived from samples, in base units. By metric, ``missing`` has the reason why it is absent,
    and ``remarks`` a remark on its value. ``observed_ns`` has, by metric and encoded likewise, the
    time that each call of the blocks spent in it, lead-in calls included. ``results`` are files
    that the parent reads.
    """

    samples_ns: tuple[str, ...]
    blocks: tuple[WorkerBlock, ...]
    first_call_s: float
    values: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)
    device_samples_ns: tuple[str, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    items: float | None = None
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

    ``values`` holds metrics in base units. By metric, ``missing`` has the reason why it is absent,
    and ``remarks`` a remark on its value. ``first_calls`` are the latencies of the first calls in
    s, warm-up included.
    ``quantiles`` are of the latency in s at 0, 1, 5, 25, 50, 75, 95, 99, 100 %.
    ``phases`` are those of cold start in s: interpreter, harness, imports, setup, first_call, and
    compiler where that was imported before them.
    ``beside`` holds, for metrics whose bursts lay side by side with those of the round's other
    worker, the log of this worker's value ÷ the other's. ``bursts`` has the medians of single
    bursts that it is made from, in order, None for an excluded burst. It is then emptied.
    Of ``bursts_measured``, ``bursts_set_aside`` were excluded. ``bursts_disturbed`` were disturbed
    and kept, as most of the worker's bursts were. ``disturbance`` is the commonest reason of
    either.
    ``bursts_delayed`` counts bursts that the kernel kept off their core, excluded or not.
    ``with_delayed`` has the values that differ where those are kept. Baselines store none of
    ``bursts``, ``bursts_delayed`` and ``with_delayed``.
    ``ancestor`` numbers the process that both workers of the round were forked from, within the
    session; 0 where they have none in common.
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

    ``rounds`` is the least number of rounds of a case and ``max_rounds`` the most;
    ``compile_rounds`` of them start with an empty compile cache. ``budget`` bounds the whole
    session, ``timeout`` each step of a worker. A worker takes bursts of ``burst`` s until it
    has ``round_time`` s of them. 0 means for ``threads`` as many as there are, for ``cores``
    chosen automatically, for ``memory_limit`` none. Without ``hints`` explanations have no hints.
    With ``flush_l2`` a device's cache is flushed before each call.

    The last two can't be configured. ``inject`` makes the ``INJECTABLE`` metrics of head worse on
    purpose, by shares. The first ``cold_start_rounds`` of a case measure cold start (None: the
    first ``rounds``); in later ones both sides may start at once.
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
    """The settings that keep a worker quiet (design 5.3), each of which can be switched off.

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
