"""One rank of ``perfci.distributed``: its place, its set-up and its steps.

Imports the standard library, and torch only inside of functions, because the variables for torch's
threads have to be set before torch is imported.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import multiprocessing
import os
import pickle
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import prod
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any

from perfci.collector import OutputSketch, Steps, Work
from perfci.metrics.accuracy import sketched
from perfci.metrics.observed.allocator import give_back, keep_pages
from perfci.metrics.observed.processes import resident

LOOPBACK = "127.0.0.1"
WHERE_IT_IS = signal.SIGUSR1
"""Signal on which a rank writes its main thread's stack to standard error."""
_PR_SET_PDEATHSIG = 1
_COLLECTIVES = ("gloo:", "nccl:")
"""Prefixes of torch's names for a collective's range, from its call until it is done."""
_KERNELS = ("ncclDevKernel", "ncclKernel")
"""Prefixes of the names of NCCL's kernels."""
_STEPS = "perfci:steps"
"""Name of the range around the profiled steps."""
_SIZES = {
    **dict.fromkeys(("bool", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>"), 8),
    "c10::complex<double>": 16,
}
"""Bytes of an element, by the name of its type in a profile. Other types count as one byte."""
_PEAK_STEPS = 3
"""Steps for a peak of memory."""
RAISED = "raised "
"""Prefix of the message of a rank's exception."""


@dataclass(frozen=True, slots=True)
class RankJob:
    """Work of all ranks: a function of a module, by their names.

    ``arguments`` are pickled. The rank unpickles them in its set-up, so an error then is reported
    like any other of the rank's. ``allocator`` has the worker's own settings, which ranks get too.
    """

    module: str
    function: str
    arguments: bytes
    backend: str
    world: int
    seed: int
    allocator: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankTask:
    """Work of one rank: its place, its parent's process id, and the rendezvous' address."""

    job: RankJob
    place: RankPlace
    master: tuple[str, int]
    parent: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, order=True)
class RankTrouble:
    """Reason why a rank can't go on. Of several reasons, the least (earliest) is the cause."""

    when_ns: int
    rank: int
    kind: str
    message: str


def serve(
    task: RankTask,
    channel: Connection,
    output: Connection,
    listener: socket.socket | None,
    inherited: Sequence[Connection],
) -> None:
    """Carry out the orders of ``channel`` until it is closed. Standard streams go to ``output``.

    ``inherited`` are the parent's ends of pipes. A fork has to close its copies, because a pipe
    ends only when all copies are closed. Rank 0 serves the rendezvous on ``listener``.
    """
    _die_with(task.parent)
    if listener and task.place.rank:
        listener.close()
    for end in inherited:
        end.close()
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    os.environ.update(task.environment)
    keep_pages(task.job.allocator)
    # start children (a DataLoader's workers) by the default method, as torchrun's ranks do, and not
    # by the method that started this rank
    multiprocessing.set_start_method(None, force=True)
    faulthandler.enable(file=2)
    faulthandler.register(WHERE_IT_IS, file=2, all_threads=False)
    answer = partial(_answer, channel, task.place.rank)
    made: list[_Rank] = []
    answer(lambda: made.append(_Rank(task, listener)))
    while made:
        try:
            order, *arguments = channel.recv()
        except (EOFError, ConnectionError):
            return
        answer(partial(getattr(made[0], order), *arguments))


def _answer(channel: Connection, rank: int, act: Callable[[], object]) -> None:
    """Send the result of ``act``, or a ``RankTrouble`` with what it raised."""
    try:
        result = act()
    except BaseException as error:  # noqa: BLE001 (user code may raise anything, which is reported)
        when_ns = time.monotonic_ns()
        traceback.print_exception(error.with_traceback(_beyond(error.__traceback__)))
        sys.stderr.flush()  # noqa: TID251 (a pipe that the worker drains)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        message = f"{RAISED}{text.removesuffix(':')[:500]}"
        channel.send(RankTrouble(when_ns, rank, "rank_raised", message))
    else:
        channel.send(result)


def _beyond(trace: TracebackType | None) -> TracebackType | None:
    """Return ``trace`` without its outermost frames that are in this file."""
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, in whatever way."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent has ended already
        os._exit(1)


class _Rank:
    """A rank's process group, and the step that the user's function returns."""

    def __init__(self, task: RankTask, listener: socket.socket | None) -> None:
        self._task = task
        job, place = task.job, task.place
        self._function = attrgetter(job.function)(import_module(job.module))
        self._call: Callable[[], Any] = lambda: None
        import torch
        import torch.distributed

        random.seed(job.seed)
        torch.manual_seed(job.seed)
        store = torch.distributed.TCPStore(
            *task.master,
            job.world,
            is_master=place.rank == 0,
            wait_for_workers=False,
            # torch's own socket would listen on every address of the machine
            master_listen_fd=listener.detach() if listener and place.rank == 0 else None,
        )
        self._cuda = job.backend == "nccl"
        if self._cuda:
            torch.cuda.set_device(_device(place, torch.cuda.device_count()))
        torch.distributed.init_process_group(
            job.backend, store=store, rank=place.rank, world_size=job.world
        )

    def set_up(self) -> None:
        """Call the user's function, which returns the step."""
        name = self._task.job.function
        made = self._function(*pickle.loads(self._task.job.arguments))  # noqa: S301 (its launcher's own)
        self._call = made.call if isinstance(made, Work) else made
        if not callable(self._call):
            raise TypeError(f"`{name}` returned {repr(made)[:80]}; return the step to call")
        if threads := self._task.environment.get("OMP_NUM_THREADS"):  # set-up may have changed it
            import torch

            torch.set_num_threads(int(threads))

    def step(self) -> None:
        """Make one step, and wait for its end."""
        self._output()

    def _output(self) -> Any:
        output = self._call()
        if self._cuda:
            import torch

            torch.cuda.synchronize()
        return output

    def begin(self) -> None:
        """Get ready for the bursts: garbage collections skip all objects that exist by now."""
        if os.environ.get("PERFCI_GC") != "1":
            gc.freeze()

    def peaks(self) -> dict[str, float]:
        """Return the peaks of memory of a few more steps, by metric, as far as they are known.

        Before each step the heap gives back its free pages, as it does for a worker's own peak.
        """
        import torch

        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        most = 0
        for _ in range(_PEAK_STEPS):
            gc.collect()
            give_back()
            try:
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            except OSError:  # this kernel has no high-water mark that can be reset
                return {}
            self.step()
            most = max(most, resident("VmHWM") or 0)
        bytes_by_metric = {"rank_peak_memory": float(most)}
        if self._cuda:
            bytes_by_metric["rank_peak_device_memory"] = float(torch.cuda.max_memory_allocated())
        return bytes_by_metric

    def inspected(self, count: int) -> Steps:
        """Make ``count`` more steps under torch's profiler, and return them.

        The profiler is ``torch.autograd``'s, because ``torch.profiler`` imports all of
        torch._dynamo, which takes seconds.
        """
        from torch.autograd.profiler import profile, record_function

        with profile(record_shapes=True, use_device="cuda" if self._cuda else None) as seen:
            self.step()  # brings the ranks, whose profilers begin at different times, into step
            with record_function(_STEPS):
                for _ in range(count):
                    self.step()
        return _steps_of(seen.kineto_results.events(), count, self._task.place.host)

    def outputs(self) -> OutputSketch:
        """Return a sketch of what one more step returns."""
        return sketched(self._output())


def _device(place: RankPlace, devices: int) -> int:
    """Return this rank's device, by its local number.

    A launcher may show each rank only its own device, which then has the number 0.
    """
    if devices == 1 and place.launched:
        return 0
    if place.local_world > devices:
        raise RuntimeError(
            f"{place.local_world} ranks of nccl need a CUDA device each; torch sees {devices}: "
            "give as many `ranks` as there are at most, or backend='gloo'"
        )
    return place.local_rank


def _steps_of(events: Sequence[Any], count: int, host: str) -> Steps:
    ((began, ended),) = (_times(event) for event in events if event.name() == _STEPS)
    calls = [
        event
        for event in events
        if event.name().startswith(_COLLECTIVES) and began <= _times(event)[0] < ended
    ]
    # NCCL's range covers only the call, so use the times of NCCL's kernels
    kernels = [event for event in events if event.name().startswith(_KERNELS)]
    return Steps(
        count,
        began,
        ended,
        tuple((call.name().partition(":")[2], _bytes_of(call)) for call in calls),
        tuple(_times(event) for event in kernels or calls),
        tuple(os.sched_getaffinity(0)),
        host,
    )


def _times(event: Any) -> tuple[float, float]:
    began = event.start_ns()
    return began / 1e9, (began + event.duration_ns()) / 1e9


def _bytes_of(event: Any) -> float:
    tensors = zip(event.shapes(), event.dtypes(), strict=False)
    return float(sum(prod(shape) * _SIZES.get(kind, 1) for shape, kind in tensors))


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Number of a rank among ``world``, and among ``local_world`` on node ``node`` of ``nodes``.

    ``host`` is the node's name if a launcher started the rank, or empty.
    """

    rank: int
    world: int
    local_rank: int
    local_world: int
    node: int = 0
    nodes: int = 1
    host: str = ""

    @property
    def launched(self) -> bool:
        """Return whether a launcher started the rank, and not its worker."""
        return bool(self.host)


def environment(
    place: RankPlace, master: tuple[str, int], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that torchrun sets, and the rank's share of the threads in ``own``."""
    variables = {
        "RANK": place.rank,
        "LOCAL_RANK": place.local_rank,
        "ROLE_RANK": place.rank,
        "GROUP_RANK": place.node,
        "WORLD_SIZE": place.world,
        "LOCAL_WORLD_SIZE": place.local_world,
        "ROLE_WORLD_SIZE": place.world,
        "GROUP_WORLD_SIZE": place.nodes,
        "MASTER_ADDR": master[0],
        "MASTER_PORT": master[1],
        "TORCHELASTIC_USE_AGENT_STORE": True,  # `env://` joins the existing store
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RUN_ID": "perfci",
    }
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (threads := own.get(name, "")).isdigit():
            variables[name] = max(1, int(threads) // place.local_world)
    return {name: str(value) for name, value in variables.items()}
