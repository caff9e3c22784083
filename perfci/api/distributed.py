"""``perfci.distributed``: ranks of a process group as work. Their worker starts and leads them."""

from __future__ import annotations

import math
import os
import pickle
import random
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from perfci.api.command import all_of
from perfci.api.ranks.children import start_children
from perfci.api.ranks.group import Group
from perfci.api.ranks.launched import launch
from perfci.api.ranks.member import END_S
from perfci.api.ranks.rank import Job
from perfci.api.work import Work
from perfci.errors import BenchmarkError, Unusable
from perfci.metrics.observed.allocator import kept_pages

BACKENDS, START_METHODS = ("gloo", "nccl"), ("spawn", "fork")


def distributed_work(
    function: Callable[..., Any],
    *,
    ranks: int,
    backend: str,
    args: Sequence[Any],
    items: float | None,
    timeout: float,
    start_method: str,
    launcher: str | Sequence[str],
    where: str,
) -> Work:
    """Start the ranks, have each set up, and return the work of one step of all."""
    wrongs = _wrongs(function, ranks, backend, args, items, timeout, start_method, launcher)
    wrong = next(wrongs, "")
    if wrong:
        raise BenchmarkError(
            "bad-distributed",
            f"{where}: perfci.distributed: {wrong}",
            "Write perfci.distributed(train, ranks=2, backend='gloo'), where `train` is a function "
            "of the benchmark's file that sets up one rank and returns its step. What can't be "
            "sent to a rank as one of `args`, make in that function.",
        )
    words = shlex.split(launcher) if isinstance(launcher, str) else list(launcher)
    if not words and start_method == "fork" and (why := _why_no_fork()):
        raise Unusable(
            "rank_unforkable",
            f"{where}: ranks can't be forked: {why}; write start_method='spawn'",
        )
    job = Job(
        function.__module__,
        function.__qualname__,
        pickle.dumps(tuple(args)),
        backend,
        ranks,
        random.getrandbits(32),
        kept_pages(),
    )
    start = partial(launch, words, timeout) if words else partial(start_children, start_method)
    group = Group(ranks, timeout, partial(start, job))
    return Work(group, items=items, ranks=group)


def _wrongs(
    function: Any,
    ranks: Any,
    backend: Any,
    args: Any,
    items: Any,
    timeout: Any,
    start_method: Any,
    launcher: Any,
) -> Iterator[str]:
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        found = attrgetter(name)(module)
    except AttributeError:
        found = None
    if not callable(function) or found is not function:
        yield f"{function!r} is no function that another process can import by its name"
    if type(ranks) is not int or ranks < 1:
        yield f"`ranks` is {ranks!r}, not how many processes: 1 or more"
    if backend not in BACKENDS:
        yield f"`backend` is {backend!r}, not one of {', '.join(BACKENDS)}"
    if start_method not in START_METHODS:
        yield f"`start_method` is {start_method!r}, not one of {', '.join(START_METHODS)}"
    if not (isinstance(launcher, str) and _can_be_split(launcher)) and not all_of(launcher, str):
        yield f"`launcher` is {launcher!r}, not a command: 'srun --overlap --ntasks=2'"
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        yield f"`timeout` is {timeout!r}, not a time in s: more than 0"
    if items is not None and not (isinstance(items, (int, float)) and 0 < items < math.inf):
        yield f"`items` is {items!r}, not how many a step of all ranks handles: more than 0"
    if not isinstance(args, (tuple, list)):
        yield f"`args` is {repr(args)[:80]}, not a tuple of arguments"
        return
    try:
        pickle.dumps(tuple(args))
    except Exception as error:  # noqa: BLE001 (a user's own __reduce__ may raise anything: told)
        yield f"`args` can't be pickled: {error}"


def _can_be_split(words: str) -> bool:
    try:
        shlex.split(words)
    except ValueError:  # a quotation without end
        return False
    return True


def _why_no_fork() -> str:
    """Return why this process must not fork: a fork keeps neither threads nor a device alive."""
    until = time.monotonic() + END_S
    while len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 (names are counted, not used)
        if time.monotonic() > until:
            return "the worker has more threads than one"
        time.sleep(0.005)  # the kernel may still list one that has ended
    torch = sys.modules.get("torch")
    return "the worker has initialised CUDA" if torch and torch.cuda.is_initialized() else ""
