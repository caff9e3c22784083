"""``perfci.distributed`` and ``perfci.torchrun``: ranks as work, led by their worker.

``rank`` and ``orders`` run in a rank's process. ``group`` is the worker's view of the ranks.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from perfci.api import all_of, is_count, require_right, user_frame
from perfci.api.distributed.group import RankGroup
from perfci.api.distributed.rank import RankJob, Script
from perfci.api.forking import unforkable_reason
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics.observed.allocator import kept_pages

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
    imports, "spawn" is always possible. Raises BenchmarkError, with file and line,
    if an argument is wrong.
    """
    require_right(
        "distributed",
        "bad-distributed",
        _wrongs_of_function(fn, ranks, args),
        "Write perfci.distributed(train, ranks=2, backend='gloo'), where `train` is a function of "
        "the benchmark's file that sets up one rank and returns its step. What can't be sent to a "
        "rank as one of `args`, make in that function.",
    )
    arguments = pickle.dumps(tuple(args))
    job = _job(ranks, (fn.__module__, fn.__qualname__), arguments, backend)
    group = _started(job, timeout, start_method)
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
    Raises BenchmarkError, with file and line, if an argument is wrong.
    """
    require_right(
        "torchrun",
        "bad-torchrun",
        _wrongs_of_script(command, ranks, steps),
        'Write perfci.torchrun(["train.py", "--config", "small.yaml"], ranks=2, steps=(20, 120)).',
    )
    script = Script(tuple(os.fspath(word) for word in command), *steps)
    group = _started(_job(ranks, script=script), timeout, start_method)
    return Work(
        group, items=items, ranks=group, most_calls=script.last - script.first - LATER_STEPS
    )


def _job(
    ranks: int,
    function: tuple[str, str] = ("", ""),
    arguments: bytes = b"",
    backend: str = "",
    script: Script | None = None,
) -> RankJob:
    seed = random.getrandbits(32)
    return RankJob(ranks, seed, os.getpid(), kept_pages(), *function, arguments, backend, script)


def _started(job: RankJob, timeout: float, start_method: str) -> RankGroup:
    if start_method == "fork" and (why := unforkable_reason()):
        raise Unusable(
            "rank_unforkable",
            f"{user_frame()}: ranks can't be forked: the worker {why}; write start_method='spawn'",
        )
    return RankGroup(job, timeout, start_method)


def _wrongs_of_function(function: Any, ranks: Any, args: Any) -> Iterator[str]:
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        importable = attrgetter(getattr(function, "__qualname__", ""))(module)
    except AttributeError:
        importable = None
    if not callable(function) or importable is not function:
        yield f"{function!r} is no function that another process can import by its name"
    if not is_count(ranks):
        yield f"`ranks` is {ranks!r}, not how many processes: 1 or more"
    try:
        pickle.dumps(tuple(args))
    except Exception as error:  # noqa: BLE001 (a user's own __reduce__ may raise anything)
        yield f"`args` can't be pickled as a tuple: {error}"


def _wrongs_of_script(command: Any, ranks: Any, steps: Any) -> Iterator[str]:
    if not all_of(command, str, os.PathLike) or list(command) == ["-m"]:
        yield f"the command is {command!r}, not a list of a script and its arguments"
        return
    script = Path(str(next(iter(command))))
    if script != Path("-m") and not script.is_file():
        yield f"there is no {script} in {Path.cwd()}"
    if not is_count(ranks):
        yield f"`ranks` is {ranks!r}, not how many processes: 1 or more"
    if not (isinstance(steps, (tuple, list)) and len(steps) == 2 and all(map(is_count, steps))):
        yield f"`steps` is {steps!r}, not how many warm up, and the number of the last measured"
    elif steps[1] - steps[0] < LEAST_STEPS:
        yield f"`steps` is {steps!r}: between both there have to be {LEAST_STEPS} at least"
