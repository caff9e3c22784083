"""The starter: imports one benchmark file once, then forks a worker for each case asked for.

It is a really fresh process, and its start is part of each worker's cold start. It forks only
while it has a single thread and no device: a fork keeps neither alive.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from perfci.model.worker import WorkOrder
from perfci.worker.devices import Kind, kinds
from perfci.worker.failure import flush
from perfci.worker.garbage import freeze
from perfci.worker.protocol import Channel, Ends

_LARGEST_REQUEST = 1 << 16
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


def serve_forks(
    order: WorkOrder, channel: Channel, become_worker: Callable[[Ends, int], None]
) -> None:
    """Fork as often as the parent asks; return when it hangs up.

    ``become_worker(ends, forked_ns)`` is called in each child and must not return.
    """
    unfit = why_unfit(kinds(order.devices))
    freeze()
    channel.send("imported", unfit=unfit)
    requests = socket.socket(fileno=order.fork_socket)
    while True:
        asked, descriptors, _, _ = socket.recv_fds(requests, _LARGEST_REQUEST, 4)
        if not asked:
            return
        flush()  # what is still buffered would be printed by both
        pid = os.fork()
        if pid == 0:
            forked_ns = time.monotonic_ns()
            os.setsid()
            requests.close()
            output, orders, results, *turns = descriptors
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            os.environ.update(json.loads(asked))
            become_worker(Ends(orders, results, *turns or (-1,)), forked_ns)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send("forked", pid=pid)
        end_group_of(pid)
        _, status = os.waitpid(pid, 0)
        channel.send("ended", code=os.waitstatus_to_exitcode(status))


def end_group_of(pid: int) -> None:
    """Wait for a worker, and kill what it left in its group before its number can be another's.

    It is kept for as long as nobody has asked how the worker ended.
    """
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(ProcessLookupError):  # it died before it had a group
        os.killpg(pid, signal.SIGKILL)


def why_unfit(found: Sequence[Kind]) -> str:
    """Return why this process must not fork, or nothing."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 (names are counted, not used)
    if threads > 1:
        return "its imports left threads running"
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)  # noqa: PTH115 (a path that needs not exist)
        except OSError:  # the descriptor of this very listing
            continue
        if target.startswith(_DEVICES):
            return f"its imports opened {target}"
    in_use = next(filter(None, (kind.in_use() for kind in found)), "")
    return f"its imports initialised {in_use}" if in_use else ""
