"""A rank that runs a training script, and waits within it at the end of each measured step."""

from __future__ import annotations

import random
import runpy
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.api.distributed.orders import Orders, Rank
from perfci.api.distributed.rank import RankTask, store_of

if TYPE_CHECKING:
    import socket

_RUNNING: list[ScriptRank] = []
"""The rank of this process, if it runs a script."""


def step() -> None:
    """Mark the end of a training step, for ``perfci.torchrun``. Anywhere else it does nothing.

    Without this line, a step ends when the script's first optimizer has made its step.
    """
    for rank in _RUNNING:
        rank.end_step_by_line()


class ScriptRank(Rank):
    """Runs a script as torchrun does.

    The script initialises the process group itself. Its rendezvous is the store of rank 0.
    """

    def __init__(self, task: RankTask, listener: socket.socket | None) -> None:
        super().__init__()
        import torch

        assert task.job.script  # noqa: S101 (``rank`` looked)
        self._script = task.job.script
        random.seed(task.job.seed)
        torch.manual_seed(task.job.seed)
        self._store = store_of(task, listener) if task.place.rank == 0 else None
        self._orders: Orders | None = None
        self._steps = 0
        self._optimizer: Any = None
        self._by_line = False

    def serve(self, orders: Orders) -> None:
        """Run the script. All but the first order are carried out from within."""
        self._orders = orders
        if not orders.want_step(self):
            return
        failure: BaseException | None = None
        try:
            self._run()
        except _HungUp:
            return
        except SystemExit as error:
            failure = error if error.code not in {None, 0} else None
        except BaseException as error:  # noqa: BLE001 (a script may raise anything)
            failure = error
        while True:
            if failure:
                orders.fail(failure)
            else:
                orders.refuse("script_ended", self._ended())
            if not orders.want_step(self):
                return

    def _ended(self) -> str:
        steps, last = self._steps, self._script.last
        if not steps:
            return "ended without a step of an optimizer of torch, and without perfci.step()"
        return (
            f"ended after {steps} steps, and `steps` says that there are {last}: have it make "
            "more, or give a smaller number"
        )

    def on_cuda(self) -> bool:
        """Return whether the script has used CUDA."""
        torch = sys.modules["torch"]
        return bool(torch.cuda.is_initialized())

    def set_up(self) -> Generator[None, Any, None]:
        """Make the steps that warm up."""
        for _ in range(self._script.first):
            yield

    def end_step_by_line(self) -> None:
        """End a step at the script's own line. From now on, the optimizer's steps don't count."""
        has_ended = not self._by_line and self._optimizer is not None  # by the optimizer, just now
        self._by_line = True
        if not has_ended:
            self._steps += 1
            self._wait()

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
            self._steps += 1
            self._wait()

    def _wait(self) -> None:
        """Wait until another step is to be made. End the script if the worker has hung up."""
        assert self._orders  # noqa: S101 (set before the script runs)
        self.wait()
        if self._optimizer:
            self._orders.output = [
                parameter for group in self._optimizer.param_groups for parameter in group["params"]
            ]
        if not self._orders.want_step(self):
            raise _HungUp


class _HungUp(BaseException):
    """Ends the script. A BaseException, so that scripts which catch Exception don't catch it."""
