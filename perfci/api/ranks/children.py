"""Ranks that are children of their worker: all on its machine, over pipes."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from perfci.api.ranks.member import Member, Started
from perfci.api.ranks.output import RankOutput
from perfci.api.ranks.place import Place, environment
from perfci.api.ranks.rank import LOOPBACK, WHERE_IT_IS, Job, Task, serve

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


def start_children(start_method: str, job: Job, started: Started) -> None:
    """Start the ranks of ``job``; each is among those ``started`` before the next.

    Rank 0 serves the rendezvous.
    """
    with socket.create_server((LOOPBACK, 0), backlog=2 * job.world) as listener:
        port = listener.getsockname()[1]
        for rank in range(job.world):
            place = Place(rank, job.world, local_rank=rank, local_world=job.world)
            interface = {
                name: os.environ.get(name, "lo")
                for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
            }
            variables = environment(place, (LOOPBACK, port), os.environ) | interface
            task = Task(job, place, (LOOPBACK, port), os.getpid(), variables)
            started.members.append(_child(task, start_method, listener, started.members))


def _child(
    task: Task, start_method: str, listener: socket.socket, others: Sequence[Member]
) -> Member:
    context: Any = multiprocessing.get_context(start_method)
    channel, theirs = context.Pipe()
    source, sink = context.Pipe(duplex=False)
    ours: tuple[Connection, ...] = (channel, source, *(one.channel for one in others))
    inherited = ours if start_method == "fork" else ()
    # no daemon: that may have no children, and a rank's DataLoader has some
    process = context.Process(target=serve, args=(task, theirs, sink, listener, inherited))
    process.start()
    theirs.close()
    sink.close()
    rank = task.place.rank
    return Member(rank, _Child(process), channel, RankOutput(f"rank {rank}", source))


@dataclass(frozen=True, slots=True)
class _Child:
    """A child's process."""

    process: BaseProcess

    @property
    def exitcode(self) -> int | None:
        """Its exit code; None while it lives."""
        return self.process.exitcode

    def join(self, within_s: float) -> None:
        """Wait for its end."""
        self.process.join(within_s)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.join()

    def show(self) -> None:
        """Have it write where it is."""
        os.kill(self.process.pid or 0, WHERE_IT_IS)
