"""A process that a launcher started. It joins its worker and starts its rank as a child process.

Whatever the rank does, this process reports how the rank ended, has the rank show where it hangs,
and ends the rank when the worker is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from threading import Thread
from typing import TYPE_CHECKING, NoReturn

from perfci.api.distributed.launched import (
    MEETING_VARIABLE,
    RANK_AND_SIZE,
    JoinRequest,
    Link,
    Meeting,
    RankOrders,
    connected,
    interface_of,
)
from perfci.api.distributed.rank import WHERE_IT_IS, serve
from perfci.worker.hook.perfci_watch.watch import begin_in_child
from perfci.worker.loading import serve_imports

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


def main() -> NoReturn:
    """Join the worker, run a rank until the worker hangs up, and leave."""
    text = os.environ.pop(MEETING_VARIABLE, "")
    if not text:
        sys.exit(
            f"perfci: the launcher doesn't pass the variable {MEETING_VARIABLE} on: "
            f"mpirun -x {MEETING_VARIABLE}"
        )
    where = Meeting.decoded(text)
    try:
        control = connected(where)
        joined = _joined(control)
        control.connection.send(("control", joined))
        if not joined.variable:  # the worker names what is wrong
            with contextlib.suppress(EOFError, OSError):
                control.connection.recv()
            os._exit(1)
        data_connections = {}
        for name in ("channel", "output"):
            data_connections[name] = connected(where).connection
            # sent before the next connection is made, because the worker waits for it
            data_connections[name].send((name, joined.rank))
    except OSError as error:
        sys.exit(f"perfci: a process on {socket.gethostname()} can't join its worker: {error}")
    with contextlib.suppress(EOFError, OSError):  # the worker is gone
        _serve_worker(control.connection, **data_connections)
    os._exit(0)


def _joined(control: Link) -> JoinRequest:
    host = socket.gethostname()
    for variable, size in RANK_AND_SIZE.items():
        rank, world = os.environ.get(variable, ""), os.environ.get(size, "")
        if rank.isdigit():
            known = int(world) if world.isdigit() else 0
            return JoinRequest(host, control.here, control.there, variable, int(rank), known)
    return JoinRequest(host, control.here, control.there)


def _serve_worker(control: Connection, channel: Connection, output: Connection) -> None:
    """Carry out the worker's orders up to the rank's start, start the rank, and stand by."""
    listener: socket.socket | None = None
    while True:
        order, what = control.recv()
        if order == "clock":
            control.send(time.monotonic_ns())
        elif order == "listen":
            family = socket.AF_INET6 if ":" in what else socket.AF_INET
            listener = socket.create_server((what, 0), family=family, backlog=1024)
            control.send(listener.getsockname()[1])
        else:
            break
    rank = _started(what, control, channel, output, listener)
    channel.close()
    output.close()
    if listener:
        listener.close()
    _stand_by(control, rank)


def _started(
    orders: RankOrders,
    control: Connection,
    channel: Connection,
    output: Connection,
    listener: socket.socket | None,
) -> BaseProcess:
    """Take over the worker's folder, import path and variables, and start the rank as a fork."""
    for name, value in orders.variables.items():
        os.environ.setdefault(name, value)  # variables that the launcher set keep their values
    os.chdir(orders.folder)
    sys.path[:] = orders.path
    serve_imports()
    if "perfci_watch" not in sys.modules:  # the launcher had not passed the variables on
        begin_in_child()
    variables = dict(orders.task.environment)
    if interface := interface_of(orders.address):
        variables["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", interface)
    task = replace(orders.task, parent=os.getpid(), environment=variables)
    context = multiprocessing.get_context("fork")
    rank = context.Process(target=serve, args=(task, channel, output, listener, (control,)))
    rank.start()
    return rank


def _stand_by(control: Connection, rank: BaseProcess) -> None:
    """Carry out the worker's orders until it hangs up. Raises EOFError or OSError then.

    This process stays when its rank ends, because the launcher might then end all its processes.
    """
    waiting = Thread(target=_report_end, args=(control, rank))
    waiting.start()
    try:
        while True:
            if control.recv() == "kill":
                rank.kill()
            elif waiting.is_alive():
                os.kill(rank.pid or 0, WHERE_IT_IS)
    finally:
        rank.kill()
        waiting.join()


def _report_end(control: Connection, rank: BaseProcess) -> None:
    """Wait for the rank's process and report its exit code.

    The end of a pipe wouldn't do: the rank's children may keep the pipe open.
    """
    rank.join()
    with contextlib.suppress(OSError):  # the worker has hung up
        control.send(rank.exitcode)
