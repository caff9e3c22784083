"""One rank of ``perfci.distributed``: its place, its set-up and its steps.

Imports the standard library, and torch only inside of functions, because the variables for torch's
threads have to be set before torch is imported.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import pickle
import random
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from operator import attrgetter
from typing import Any

from perfci.api.distributed.orders import Orders, Rank
from perfci.collector import Work
from perfci.metrics.observed.allocator import keep_pages

LOOPBACK = "127.0.0.1"
WHERE_IT_IS = signal.SIGUSR1
"""Signal on which a rank writes its main thread's stack to standard error."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class RankJob:
    """Work of all ranks: a function of a module, by their names.

    ``arguments`` are pickled. The rank unpickles them in its set-up, so an error then is reported
    like any other of the rank's. ``allocator`` has the worker's own settings, which ranks get too.
    With ``script`` there is no function: each rank runs the script.
    """

    module: str
    function: str
    arguments: bytes
    backend: str
    world: int
    seed: int
    allocator: Mapping[str, int] = field(default_factory=dict)
    script: Script | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A training script with its arguments, or ``-m`` and a module with its arguments.

    ``first`` steps warm up. ``last`` is the number of its last measured step.
    """

    words: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RankTask:
    """Work of one rank: its place, its parent's process id, and the rendezvous' address."""

    job: RankJob
    place: RankPlace
    master: tuple[str, int]
    parent: int
    environment: Mapping[str, str]


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
    orders = Orders(channel, task.place.rank)
    try:
        rank = _rank_of(task, listener)
    except BaseException as error:  # noqa: BLE001 (reported)
        orders.fail(error)
        return
    channel.send(None)
    rank.serve(orders)


def _rank_of(task: RankTask, listener: socket.socket | None) -> Rank:
    if task.job.script is None:
        return _FunctionRank(task, listener)
    from perfci.api.distributed.script_rank import ScriptRank

    return ScriptRank(task, listener)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, in whatever way."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent has ended already
        os._exit(1)


class _FunctionRank(Rank):
    """A rank's process group, and the step that the user's function returns."""

    def __init__(self, task: RankTask, listener: socket.socket | None) -> None:
        super().__init__()
        self._task = task
        job, place = task.job, task.place
        self._function = attrgetter(job.function)(import_module(job.module))
        self._call: Callable[[], Any] = lambda: None
        import torch
        import torch.distributed

        random.seed(job.seed)
        torch.manual_seed(job.seed)
        store = store_of(task, listener)
        self._cuda = job.backend == "nccl"
        if self._cuda:
            torch.cuda.set_device(_device(place, torch.cuda.device_count()))
        torch.distributed.init_process_group(
            job.backend, store=store, rank=place.rank, world_size=job.world
        )

    def set_up(self) -> None:
        """Call the user's function, which returns the step."""
        name = self._task.job.function
        made = self._function(*pickle.loads(self._task.job.arguments))  # noqa: S301 (its worker's own)
        self._call = made.call if isinstance(made, Work) else made
        if not callable(self._call):
            raise TypeError(f"`{name}` returned {repr(made)[:80]}; return the step to call")
        if threads := self._task.environment.get("OMP_NUM_THREADS"):  # set-up may have changed it
            import torch

            torch.set_num_threads(int(threads))

    def on_cuda(self) -> bool:
        """Return whether the steps use CUDA."""
        return self._cuda

    def serve(self, orders: Orders) -> None:
        """Call the step as often as the orders need it."""
        while orders.want_step(self):
            try:
                orders.output = self._call()
                self.wait()
            except BaseException as error:  # noqa: BLE001 (the user's code may raise anything)
                orders.fail(error)


def store_of(task: RankTask, listener: socket.socket | None) -> Any:
    """Return the rendezvous' store, which rank 0 serves."""
    import torch.distributed

    serves = task.place.rank == 0
    return torch.distributed.TCPStore(
        *task.master,
        task.job.world,
        is_master=serves,
        wait_for_workers=False,
        # torch's own socket would listen on every address of the machine
        master_listen_fd=listener.detach() if listener and serves else None,
    )


def _device(place: RankPlace, devices: int) -> int:
    """Return this rank's device, by its local number."""
    if place.local_world > devices:
        raise RuntimeError(
            f"{place.local_world} ranks of nccl need a CUDA device each; torch sees {devices}: "
            "give as many `ranks` as there are at most, or backend='gloo'"
        )
    return place.local_rank


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Number of a rank among ``world``, and among ``local_world`` on this node."""

    rank: int
    world: int
    local_rank: int
    local_world: int


def environment(
    place: RankPlace, master: tuple[str, int], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that torchrun sets, and the rank's share of the threads in ``own``."""
    variables = {
        "RANK": place.rank,
        "LOCAL_RANK": place.local_rank,
        "ROLE_RANK": place.rank,
        "GROUP_RANK": 0,
        "WORLD_SIZE": place.world,
        "LOCAL_WORLD_SIZE": place.local_world,
        "ROLE_WORLD_SIZE": place.world,
        "GROUP_WORLD_SIZE": 1,
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
