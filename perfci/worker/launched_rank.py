"""A process that a launcher started: it joins its worker, and starts the rank that it is to be.

It stays next to the rank, a child of its: it says how that ended, has it show where it hangs, and
ends it when the worker is gone, whatever the rank does meanwhile.
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
    RANK_AND_SIZE,
    VARIABLE,
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
    """Join, be a rank until the worker hangs up, and leave."""
    text = os.environ.pop(VARIABLE, "")
    if not text:
        sys.exit(
            f"perfci: the launcher doesn't pass the variable {VARIABLE} on: mpirun -x {VARIABLE}"
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
        others = {}
        for name in ("channel", "output"):
            others[name] = connected(where).connection
            others[name].send((name, joined.rank))  # at once: the worker waits for it
    except OSError as error:
        sys.exit(f"perfci: a process on {socket.gethostname()} can't join its worker: {error}")
    with contextlib.suppress(EOFError, OSError):  # the worker is gone
        _be_led(control.connection, **others)
    os._exit(0)


def _joined(control: Link) -> JoinRequest:
    host = socket.gethostname()
    for variable, size in RANK_AND_SIZE.items():
        rank, world = os.environ.get(variable, ""), os.environ.get(size, "")
        if rank.isdigit():
            known = int(world) if world.isdigit() else 0
            return JoinRequest(host, control.here, control.there, variable, int(rank), known)
    return JoinRequest(host, control.here, control.there)


def _be_led(control: Connection, channel: Connection, output: Connection) -> None:
    """Do what is asked before the rank begins, start it, and stand by."""
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
    """Take the worker's folder, import path and variables, and start the rank as a fork."""
    for name, value in orders.variables.items():
        os.environ.setdefault(name, value)  # of those that the launcher sets, its own
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
    """Do as the worker says until it hangs up. Raises EOFError or OSError then.

    Also where the rank has ended: a launcher may end all others when one of its tasks has.
    """
    waiting = Thread(target=_say_its_end, args=(control, rank))
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


def _say_its_end(control: Connection, rank: BaseProcess) -> None:
    """Wait for the process itself: a pipe that it had open, a child of its may have still."""
    rank.join()
    with contextlib.suppress(OSError):  # the worker has hung up
        control.send(rank.exitcode)
