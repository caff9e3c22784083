"""``perfci.distributed`` and ``perfci.torchrun``: ranks as work, led by their worker.

``rank``, ``script_rank`` and ``orders`` run in a rank's process. ``member`` is the worker's view of
a rank.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import random
import select
import socket
import sys
import time
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

from perfci.api import all_of, is_count, require_right, user_frame
from perfci.api.distributed.member import (
    GRACE_S,
    LAST_WORDS_S,
    ChildRank,
    Member,
    RankOutput,
    StartedRanks,
    answer_of,
    death_of,
    hanging_failure,
    standing,
)
from perfci.api.distributed.orders import RAISED, RankTrouble
from perfci.api.distributed.rank import (
    LOOPBACK,
    RankJob,
    RankPlace,
    RankTask,
    Script,
    environment,
    serve,
)
from perfci.api.forking import unforkable_reason
from perfci.collector import OutputSketch, Steps, Work
from perfci.errors import Unusable
from perfci.metrics.observed.allocator import kept_pages

BACKENDS, START_METHODS = ("gloo", "nccl"), ("spawn", "fork")
_STACK_S = 5.0
"""Time for a rank that hangs to write its stack, on a node that may be busy or far."""
_LONGEST_POLL_MS = 2**31 - 1
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
    where it is written wrongly.
    """
    require_right(
        "distributed",
        "bad-distributed",
        chain(
            _wrongs_of_function(fn, backend, args),
            _wrongs_of_group(ranks, items, timeout, start_method),
        ),
        "Write perfci.distributed(train, ranks=2, backend='gloo'), where `train` is a function of "
        "the benchmark's file that sets up one rank and returns its step. What can't be sent to a "
        "rank as one of `args`, make in that function.",
    )
    job = RankJob(
        fn.__module__,
        fn.__qualname__,
        pickle.dumps(tuple(args)),
        backend,
        ranks,
        random.getrandbits(32),
        kept_pages(),
    )
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
    Raises BenchmarkError, with file and line, where it is written wrongly.
    """
    require_right(
        "torchrun",
        "bad-torchrun",
        chain(
            _wrongs_of_script(command, steps),
            _wrongs_of_group(ranks, items, timeout, start_method),
        ),
        'Write perfci.torchrun(["train.py", "--config", "small.yaml"], ranks=2, steps=(20, 120)).',
    )
    script = Script(tuple(os.fspath(word) for word in command), *steps)
    seed = random.getrandbits(32)
    job = RankJob("", "", b"", "", ranks, seed, kept_pages(), script)
    group = _started(job, timeout, start_method)
    most_calls = script.last - script.first - LATER_STEPS
    return Work(group, items=items, ranks=group, most_calls=most_calls)


def _started(job: RankJob, timeout: float, start_method: str) -> RankGroup:
    if start_method == "fork" and (why := unforkable_reason()):
        raise Unusable(
            "rank_unforkable",
            f"{user_frame()}: ranks can't be forked: the worker {why}; write start_method='spawn'",
        )
    return RankGroup(job.world, timeout, partial(start_children, start_method, job))


def _wrongs_of_script(command: Any, steps: Any) -> Iterator[str]:
    if not all_of(command, str, os.PathLike) or list(command) == ["-m"]:
        yield f"the command is {command!r}, not a list of a script and its arguments"
        return
    script = Path(str(next(iter(command))))
    if script != Path("-m") and not script.is_file():
        yield f"there is no {script} in {Path.cwd()}"
    if not (isinstance(steps, (tuple, list)) and len(steps) == 2 and all(map(is_count, steps))):
        yield f"`steps` is {steps!r}, not how many warm up, and the number of the last measured"
    elif steps[1] - steps[0] < LEAST_STEPS:
        yield f"`steps` is {steps!r}: between both there have to be {LEAST_STEPS} at least"


def _wrongs_of_function(function: Any, backend: Any, args: Any) -> Iterator[str]:
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        importable = attrgetter(name)(module)
    except AttributeError:
        importable = None
    if not callable(function) or importable is not function:
        yield f"{function!r} is no function that another process can import by its name"
    if backend not in BACKENDS:
        yield f"`backend` is {backend!r}, not one of {', '.join(BACKENDS)}"
    if not isinstance(args, (tuple, list)):
        yield f"`args` is {repr(args)[:80]}, not a tuple of arguments"
        return
    try:
        pickle.dumps(tuple(args))
    except Exception as error:  # noqa: BLE001 (a user's own __reduce__ may raise anything)
        yield f"`args` can't be pickled: {error}"


def _wrongs_of_group(ranks: Any, items: Any, timeout: Any, start_method: Any) -> Iterator[str]:
    if not is_count(ranks):
        yield f"`ranks` is {ranks!r}, not how many processes: 1 or more"
    if start_method not in START_METHODS:
        yield f"`start_method` is {start_method!r}, not one of {', '.join(START_METHODS)}"
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        yield f"`timeout` is {timeout!r}, not a time in s: more than 0"
    if items is not None and not (isinstance(items, (int, float)) and 0 < items < math.inf):
        yield f"`items` is {items!r}, not how many a step of all ranks handles: more than 0"


class RankGroup:
    """The ranks of a side. A call makes one step of each rank, and ends when the last one ends."""

    def __init__(self, world: int, timeout: float, start: Callable[[StartedRanks], None]) -> None:
        self._world = world
        self._timeout = timeout
        self._started = StartedRanks()
        self._members = self._started.members
        weakref.finalize(self, self._started.end)
        start(self._started)
        self._by_descriptor: dict[int, Member] = {}
        self._poll = select.poll()
        for member in self._members:
            self._by_descriptor[member.channel.fileno()] = member
            self._poll.register(member.channel.fileno(), select.POLLIN)
            member.output.start()
        self._act = "start"
        self._answers(None)
        self._act = "set-up"
        self._all("set_up")
        self._act = "step"

    def __call__(self) -> None:
        """Make a step of each rank."""
        self._all("step")

    def begin(self) -> None:
        """Let the ranks know that they are warm: the bursts are next."""
        self._all("begin")

    def peaks(self) -> Sequence[Mapping[str, float]]:
        """Return each rank's peaks of memory, by metric."""
        return self._all("peaks")

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return each rank's profile of ``count`` more steps."""
        return self._all("inspected", count, times=count)

    def outputs(self) -> Sequence[OutputSketch]:
        """Return a sketch of each rank's output of one more step."""
        return self._all("outputs")

    def _all(self, order: str, *arguments: Any, times: int = 1) -> list[Any]:
        """Send an order to every rank and return their answers."""
        for member in self._members:
            with contextlib.suppress(OSError):  # the rank died, which reading its channel will show
                member.channel.send((order, *arguments))
        return self._answers(times * self._timeout)

    def _answers(self, within_s: float | None) -> list[Any]:
        """Return the answers of all ranks, in order. Raises Unusable if a rank fails or hangs."""
        answers: dict[int, Any] = {}
        until = time.monotonic() + (within_s or 0.0)
        while len(answers) < self._world:
            left_ms = min(_LONGEST_POLL_MS, max(0.0, until - time.monotonic()) * 1e3)
            ready = self._poll.poll(None if within_s is None else left_ms)
            if not ready:
                raise self._hanging(answers)
            for descriptor, _ in ready:
                member = self._by_descriptor[descriptor]
                answer = answer_of(member)
                if isinstance(answer, RankTrouble):
                    raise self._failure(answer)
                answers[member.rank] = answer
        return [answers[rank] for rank in range(self._world)]

    def _failure(self, first: RankTrouble) -> Unusable:
        """Return the failure of the rank that failed first or died, and end all ranks."""
        troubles = [first]
        until = time.monotonic() + GRACE_S
        while (left_s := until - time.monotonic()) > 0 and len(troubles) < self._world:
            for descriptor, _ in self._poll.poll(left_s * 1e3):
                self._poll.unregister(descriptor)  # a dead rank's descriptor stays ready for ever
                answer = answer_of(self._by_descriptor[descriptor])
                if isinstance(answer, RankTrouble) and answer.rank != first.rank:
                    troubles.append(answer)
        worst = min([*troubles, *self._deaths({trouble.rank for trouble in troubles})])
        member = self._members[worst.rank]
        place = f"rank {worst.rank} of {self._world}"
        text = f"{place}, in its {self._act}, {worst.message}"
        words = member.output.last_words(LAST_WORDS_S, worst.message.removeprefix(RAISED))
        message = f"{text}:\n{words}" if words else text
        self._started.end(within_s=0.0)
        return Unusable(worst.kind, message)

    def _hanging(self, answered: Container[int]) -> Unusable:
        """Return the failure of ranks that hang: where each late one stands. End all ranks."""
        if deaths := self._deaths(answered):
            return self._failure(min(deaths))
        late = [member for member in self._members if member.rank not in answered]
        for member in late:
            member.process.show()
        stand = [standing(member.rank, member.output.stack(_STACK_S)) for member in late]
        self._started.end(within_s=0.0)
        return Unusable(*hanging_failure(stand, self._world, self._act, self._timeout))

    def _deaths(self, known: Container[int]) -> list[RankTrouble]:
        """Return the ranks that died unnoticed, as a channel stays open while a child holds it."""
        others = (member for member in self._members if member.rank not in known)
        return [death_of(other) for other in others if other.process.exitcode]


def start_children(start_method: str, job: RankJob, started: StartedRanks) -> None:
    """Start the ranks of ``job``, and add each to ``started`` before the next one starts.

    Rank 0 serves the rendezvous.
    """
    with socket.create_server((LOOPBACK, 0), backlog=2 * job.world) as listener:
        port = listener.getsockname()[1]
        for rank in range(job.world):
            place = RankPlace(rank, job.world, local_rank=rank, local_world=job.world)
            interface = {
                name: os.environ.get(name, "lo")
                for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
            }
            variables = environment(place, (LOOPBACK, port), os.environ) | interface
            task = RankTask(job, place, (LOOPBACK, port), os.getpid(), variables)
            started.members.append(_child(task, start_method, listener, started.members))


def _child(
    task: RankTask, start_method: str, listener: socket.socket, others: Sequence[Member]
) -> Member:
    context: Any = multiprocessing.get_context(start_method)
    channel, rank_end = context.Pipe()
    source, sink = context.Pipe(duplex=False)
    ours: tuple[Connection, ...] = (channel, source, *(other.channel for other in others))
    inherited = ours if start_method == "fork" else ()
    # not a daemon, which must not have children: a rank's DataLoader has some
    process = context.Process(target=serve, args=(task, rank_end, sink, listener, inherited))
    process.start()
    rank_end.close()
    sink.close()
    rank = task.place.rank
    return Member(rank, ChildRank(process), channel, RankOutput(f"rank {rank}", source))
