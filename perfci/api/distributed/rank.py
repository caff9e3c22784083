"""One rank: its process, its set-up, and its steps, of a function or of a training script.

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
import runpy
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

from perfci.api import THREAD_VARIABLES
from perfci.api.distributed.orders import Orders, Rank, ScriptEnded
from perfci.collector import Work
from perfci.metrics.observed.allocator import keep_pages

LOOPBACK = "127.0.0.1"
WHERE_IT_IS = signal.SIGUSR1
"""Signal on which a rank writes its main thread's stack to standard error."""
_PR_SET_PDEATHSIG = 1
_RUNNING: list[ScriptRank] = []
"""The rank of this process, if it runs a script."""


@dataclass(frozen=True, slots=True)
class Script:
    """A training script with its arguments, or ``-m`` and a module with its arguments.

    ``first`` steps warm up. ``last`` is the number of its last measured step.
    """

    words: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RankJob:
    """Work of ``world`` ranks: a ``function`` of a ``module``, by their names, or a ``script``.

    ``parent`` is the worker's process id. ``allocator`` has the worker's own settings, which ranks
    get too. ``arguments`` are pickled. The rank unpickles them in its set-up, so an error then is
    reported like any other of the rank's. ``port`` is the rendezvous'.
    """

    world: int
    seed: int
    parent: int
    allocator: Mapping[str, int]
    module: str = ""
    function: str = ""
    arguments: bytes = b""
    backend: str = ""
    script: Script | None = None
    port: int = 0


def serve(
    job: RankJob,
    number: int,
    channel: Connection,
    output: Connection,
    listener: socket.socket,
    inherited: Sequence[Connection],
) -> None:
    """Carry out the orders of ``channel`` until it is closed. Standard streams go to ``output``.

    ``inherited`` are the parent's ends of pipes. A fork has to close its copies, because a pipe
    ends only when all copies are closed. Rank 0 serves the rendezvous on ``listener``.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != job.parent:  # the parent has ended already
        os._exit(1)
    if number:
        listener.close()
    for end in inherited:
        end.close()
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    os.environ.update(environment(job, number))
    keep_pages(job.allocator)
    # start children (a DataLoader's workers) by the default method, as torchrun's ranks do, and not
    # by the method that started this rank
    multiprocessing.set_start_method(None, force=True)
    faulthandler.enable(file=2)
    faulthandler.register(WHERE_IT_IS, file=2, all_threads=False)
    orders = Orders(channel, number)
    try:
        import torch

        random.seed(job.seed)
        torch.manual_seed(job.seed)
        kind = ScriptRank if job.script else FunctionRank
        rank = kind(job, number, listener)
    except BaseException as error:  # noqa: BLE001 (reported)
        orders.fail(error)
        return
    channel.send(None)
    rank.serve(orders)


def environment(job: RankJob, number: int) -> dict[str, str]:
    """Return the variables that torchrun sets, and the rank's share of the worker's threads."""
    variables = {
        **dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), number),
        "GROUP_RANK": 0,
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"), job.world),
        "GROUP_WORLD_SIZE": 1,
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": job.port,
        "TORCHELASTIC_USE_AGENT_STORE": True,  # `env://` joins the existing store
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RUN_ID": "perfci",
    }
    for name in THREAD_VARIABLES:
        if (threads := os.environ.get(name, "")).isdigit():
            variables[name] = max(1, int(threads) // job.world)
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        variables[name] = os.environ.get(name, "lo")
    return {name: str(value) for name, value in variables.items()}


def _store(job: RankJob, number: int, listener: socket.socket) -> Any:
    """Return the rendezvous' store, which rank 0 serves."""
    import torch.distributed

    return torch.distributed.TCPStore(
        LOOPBACK,
        job.port,
        job.world,
        is_master=number == 0,
        wait_for_workers=False,
        # torch's own socket would listen on every address of the machine
        master_listen_fd=None if number else listener.detach(),
    )


class FunctionRank(Rank):
    """A rank's process group, and the step that the user's function returns."""

    def __init__(self, job: RankJob, number: int, listener: socket.socket) -> None:
        super().__init__()
        self._job = job
        self._function = attrgetter(job.function)(import_module(job.module))
        self._call: Callable[[], Any] = lambda: None
        import torch
        import torch.distributed

        store = _store(job, number, listener)
        if job.backend == "nccl":
            if job.world > (devices := torch.cuda.device_count()):
                raise RuntimeError(
                    f"{job.world} ranks of nccl need a CUDA device each; torch sees {devices}: "
                    "reduce `ranks`, or set backend='gloo'"
                )
            torch.cuda.set_device(number)
        torch.distributed.init_process_group(
            job.backend, store=store, rank=number, world_size=job.world
        )

    def set_up(self) -> None:
        """Call the user's function, which returns the step."""
        if threads := os.environ.get("OMP_NUM_THREADS"):  # a fork's torch has read the worker's
            import torch

            torch.set_num_threads(int(threads))
        made = self._function(*pickle.loads(self._job.arguments))  # noqa: S301 (its worker's own)
        self._call = made.call if isinstance(made, Work) else made
        if not callable(self._call):
            returned = f"`{self._job.function}` returned {repr(made)[:80]}"
            raise TypeError(f"{returned}; return the step to call")

    def serve(self, orders: Orders) -> None:
        """Call the step as often as the orders need it."""
        for _ in orders.served_by(self):
            try:
                orders.output = self._call()
                self.wait()
            except BaseException as error:  # noqa: BLE001 (the user's code may raise anything)
                orders.error = error


def step() -> None:
    """Mark the end of a training step, for ``perfci.torchrun``. Anywhere else it does nothing.

    Without this line, a step ends when the script's first optimizer has made its step.
    """
    for rank in _RUNNING:
        rank.end_step_by_line()


class ScriptRank(Rank):
    """Runs a script as torchrun does, and waits within it at the end of each measured step.

    The script initialises the process group itself. Its rendezvous is the store of rank 0.
    """

    def __init__(self, job: RankJob, number: int, listener: socket.socket) -> None:
        super().__init__()
        assert job.script  # noqa: S101 (``serve`` looked)
        self._script = job.script
        self._store = None if number else _store(job, number, listener)
        self._orders: Orders
        self._ordered: Iterator[None]
        self._steps = 0
        self._optimizer: Any = None
        self._by_line = False

    def serve(self, orders: Orders) -> None:
        """Run the script. All but the first order are carried out from within."""
        self._orders, self._ordered = orders, orders.served_by(self)
        try:
            self._await_order()
            self._run()
            orders.error = self._ended()
        except _HungUp:
            return
        except SystemExit as error:
            orders.error = error if error.code else self._ended()
        except BaseException as error:  # noqa: BLE001 (a script may raise anything)
            orders.error = error
        failure = orders.error
        for _ in self._ordered:
            orders.error = failure

    def _await_order(self) -> None:
        """Wait until a step is to be made. End the script if the worker has hung up."""
        if next(self._ordered, _HungUp) is _HungUp:
            raise _HungUp

    def _ended(self) -> ScriptEnded:
        if not self._steps:
            return ScriptEnded("ended without a step of an optimizer, and without perfci.step()")
        return ScriptEnded(
            f"ended after {self._steps} steps, and `steps` says that there are "
            f"{self._script.last}: make more steps, or give a smaller number"
        )

    def set_up(self) -> Generator[None, Any, None]:
        """Make the steps that warm up."""
        for _ in range(self._script.first):
            yield

    def end_step_by_line(self) -> None:
        """End a step at the script's own line. From now on, the optimizer's steps don't count."""
        has_ended = not self._by_line and self._optimizer is not None  # by the optimizer, just now
        self._by_line = True
        if not has_ended:
            self._end_step()

    def _run(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(self._end_step_by_optimizer)
        _RUNNING.append(self)
        words = self._script.words
        if words[0] == "-m":
            sys.argv = list(words[1:])
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(words)
            sys.path.insert(0, str(Path(words[0]).resolve().parent))
            runpy.run_path(words[0], run_name="__main__")

    def _end_step_by_optimizer(self, optimizer: Any, *_: Any) -> None:
        """End a step, unless another optimizer or the script's own line does."""
        self._optimizer = self._optimizer or optimizer
        if not self._by_line and optimizer is self._optimizer:
            self._end_step()

    def _end_step(self) -> None:
        self._steps += 1
        self.wait()
        if self._optimizer:
            self._orders.output = [
                parameter for group in self._optimizer.param_groups for parameter in group["params"]
            ]
        self._await_order()


class _HungUp(BaseException):
    """Ends the script. A BaseException, so that scripts which catch Exception don't catch it."""
