"""``perfci.distributed`` and ``perfci.torchrun``: ranks as work, led by their worker.

``rank`` and ``orders`` run in a rank's process. ``group`` is the worker's view of the ranks.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from perfci.api import is_count, require, user_frame
from perfci.api.distributed.group import RankGroup
from perfci.api.distributed.rank import RankJob, Script
from perfci.api.forking import unforkable_reason
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics.observed.allocator import settings_to_keep_pages

LATER_STEPS = 40
"""Steps of a script that are kept for what is measured after the bursts."""
LEAST_STEPS = LATER_STEPS + 10


def distributed(
    fn: Callable[..., Any],
    *,
    ranks: int,
    backend: str = "gloo",
    args: Sequence[Any] = (),
    items: float | None = None,
    timeout: float = 120.0,
    start_method: str = "spawn",
) -> Work:
    """Return the work of one step of ``ranks`` processes, from when all begin until the last ends.

    Each rank has torchrun's environment and a process group of ``backend`` ("gloo" or "nccl"), and
    calls ``fn(*args)``, a function of the benchmark's file, which returns its step. A set-up or a
    step that takes more than ``timeout`` s fails. ``start_method`` "fork" spares the ranks their
    imports, "spawn" is always possible.
    """
    require(
        _is_importable(fn),
        "distributed",
        f"{fn!r} can't be imported by its name",
        "Write perfci.distributed(train, ranks=2, backend='gloo'), where `train` is a function of "
        "the benchmark's file that sets up one rank and returns its step.",
    )
    group = _started(
        ranks,
        timeout,
        start_method,
        module=fn.__module__,
        function=fn.__qualname__,
        arguments=pickle.dumps(tuple(args)),
        backend=backend,
    )
    return Work(group, items=items, ranks=group)


def torchrun(
    command: Sequence[str | os.PathLike[str]],
    *,
    ranks: int,
    steps: tuple[int, int] = (20, 120),
    items: float | None = None,
    timeout: float = 600.0,
    start_method: str = "spawn",
) -> Work:
    """Return the work of one training step of a script that runs in ``ranks`` processes.

    ``command`` is the script, relative to the side's tree, or ``"-m"`` and a module, with its
    arguments. Each rank runs it as ``torchrun`` does, and waits at the end of a step until the next
    one is to be measured. A step ends when the first optimizer's ``step`` does, or at the script's
    own line ``perfci.step()``. Of ``steps``, (20, 120) are 20 to warm up, and the number of the
    last one that is measured; a rank is ended before the script is. ``items`` are those that a step
    of all ranks handles. ``timeout`` s are for the way to the first measured step, and for a step.
    """
    require(
        not isinstance(command, (str, os.PathLike)),
        "torchrun",
        f"the command is {command!r}, and not a list",
        'Write perfci.torchrun(["train.py", "--config", "small.yaml"], ranks=2, steps=(20, 120)).',
    )
    first, last = steps
    require(
        0 < first <= last - LEAST_STEPS,
        "torchrun",
        f"`steps` is {steps!r}",
        "Write the number of steps that warm up, 1 or more, and the number of the last measured "
        f"step, at least {LEAST_STEPS} later.",
    )
    script = Script(tuple(os.fspath(word) for word in command), first, last)
    group = _started(ranks, timeout, start_method, script=script)
    return Work(group, items=items, ranks=group, most_calls=last - first - LATER_STEPS)


def _started(ranks: int, timeout: float, start_method: str, **work: Any) -> RankGroup:
    function = "torchrun" if "script" in work else "distributed"
    require(is_count(ranks), function, f"`ranks` is {ranks!r}", "Write 1 or more.")
    if start_method == "fork" and (why := unforkable_reason()):
        raise Unusable(
            "rank_unforkable",
            f"{user_frame()}: ranks can't be forked: the worker {why}; write start_method='spawn'",
        )
    job = RankJob(ranks, random.getrandbits(32), os.getpid(), settings_to_keep_pages(), **work)
    return RankGroup(job, timeout, start_method)


def _is_importable(function: Any) -> bool:
    try:
        module = sys.modules[function.__module__]
        return attrgetter(function.__qualname__)(module) is function
    except (AttributeError, KeyError):
        return False
