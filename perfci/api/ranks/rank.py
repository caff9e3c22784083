"""One rank of ``perfci.distributed``: a process that sets up, then makes a step when it is told to.

Standard library, and torch inside of what needs it: its threads are set before it is imported.
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
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeVar

from perfci.api.ranks.place import Place
from perfci.api.ranks.steps import inspected, peaks
from perfci.api.work import Work
from perfci.collecting import OutputSketch, Steps
from perfci.metrics.observed.allocator import keep_pages
from perfci.metrics.rank_outputs import sketched

T = TypeVar("T")
LOOPBACK = "127.0.0.1"
WHERE_IT_IS = signal.SIGUSR1
"""Has a rank write to standard error where its main thread is, whatever it waits for."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Job:
    """What all ranks are to run: a function of a module, by names.

    ``arguments`` are pickled: what can't be made of them is the rank's failure, told like others.
    ``allocator`` has the worker's own settings of it, which ranks get, too.
    """

    module: str
    function: str
    arguments: bytes
    backend: str
    world: int
    seed: int
    allocator: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """What one rank is to run: which it is, whose child, where rank 0 serves the rendezvous."""

    job: Job
    place: Place
    master: tuple[str, int]
    parent: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Raised:
    """What a rank answers that could not do as it was told; ``when_ns`` is of the common clock."""

    when_ns: int
    said: str


def serve(
    task: Task,
    channel: Connection,
    output: Connection,
    listener: socket.socket | None,
    inherited: Sequence[Connection],
) -> None:
    """Do as ``channel`` says until it is closed. Standard streams go to ``output``.

    ``inherited`` are its parent's ends, which a fork has, too: it would not see them closed. Rank
    0 serves the rendezvous on ``listener``.
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
    # what it starts is started as by torchrun's ranks, not as this one was: a DataLoader's workers
    multiprocessing.set_start_method(None, force=True)
    faulthandler.enable(file=2)
    faulthandler.register(WHERE_IT_IS, file=2, all_threads=False)
    rank = _answer(channel, lambda: _Rank(task, listener), lambda _: None)
    while rank:
        try:
            order, *arguments = channel.recv()
        except (EOFError, ConnectionError):
            return
        _answer(channel, partial(getattr(rank, order), *arguments))


def _answer(
    channel: Connection, act: Callable[[], T], said: Callable[[T], object] = lambda made: made
) -> T | None:
    """Answer with what is ``said`` of what ``act`` returns, or with what it raised."""
    try:
        made = act()
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: told, not hidden)
        when_ns = time.monotonic_ns()
        traceback.print_exception(error.with_traceback(_beyond(error.__traceback__)))
        sys.stderr.flush()  # noqa: TID251 (a pipe that the worker drains)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        channel.send(Raised(when_ns, text.removesuffix(":")[:500]))
        return None
    channel.send(said(made))
    return made


def _beyond(trace: TracebackType | None) -> TracebackType | None:
    """Return what of ``trace`` is not of this file."""
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _die_with(parent: int) -> None:
    """Have the kernel end this process when the one that started it ends, however that does."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was quicker
        os._exit(1)


class _Rank:
    """The process group, and what the user's function makes of it."""

    def __init__(self, task: Task, listener: socket.socket | None) -> None:
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
        """Have the user's function make the step."""
        name = self._task.job.function
        made = self._function(*pickle.loads(self._task.job.arguments))  # noqa: S301 (its launcher's own)
        self._call = made.call if isinstance(made, Work) else made
        if not callable(self._call):
            raise TypeError(f"`{name}` returned {repr(made)[:80]}; return the step to call")
        if threads := self._task.environment.get("OMP_NUM_THREADS"):  # set-up may have changed it
            import torch

            torch.set_num_threads(int(threads))

    def step(self) -> None:
        """Make one step, to its end."""
        self._output()

    def _output(self) -> Any:
        output = self._call()
        if self._cuda:
            import torch

            torch.cuda.synchronize()
        return output

    def begin(self) -> None:
        """Be warm: look at what is there by now never again, when garbage is collected."""
        if os.environ.get("PERFCI_GC") != "1":
            gc.freeze()

    def peaks(self) -> dict[str, float]:
        """Return the most memory of a few more steps."""
        return peaks(self.step, cuda=self._cuda)

    def inspected(self, count: int) -> Steps:
        """Make more steps under torch's profiler."""
        steps = inspected(self.step, count, cuda=self._cuda)
        return replace(steps, host=self._task.place.host)

    def outputs(self) -> OutputSketch:
        """Return a sketch of what one more step returns."""
        return sketched(self._output())


def _device(place: Place, devices: int) -> int:
    """Return which device is this rank's: the only one where a launcher shows each its own."""
    if devices == 1 and place.launched:
        return 0
    if place.local_world > devices:
        raise RuntimeError(
            f"{place.local_world} ranks of nccl need a CUDA device each; torch sees {devices}: "
            "give as many `ranks` as there are at most, or backend='gloo'"
        )
    return place.local_rank
