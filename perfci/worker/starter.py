"""A process that has imported what its workers need, and forks them.

A **starter** has imported one side's benchmark file. An **ancestor** has imported what both sides
need of their libraries, and nothing of either side's own: its workers import that themselves.
Either is a really fresh process, and its start is part of each worker's cold start. It forks only
while it has a single thread and no device: a fork keeps neither alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

from perfci.clock import monotonic_ns
from perfci.model.worker import WorkOrder
from perfci.worker.bursts import freeze
from perfci.worker.devices import DeviceKind, kinds
from perfci.worker.imports import ImportRecord, forget_places, importable, modules, torch_state
from perfci.worker.protocol import Channel, WorkerDescriptors, flush, where_it_failed

_LARGEST_REQUEST = 1 << 16
_MOST_DESCRIPTORS = 16
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
TOKEN = "PERFCI_WORKER"  # noqa: S105 (no password)
"""The variable by which the parent finds all that a worker started."""


def import_libraries(order: WorkOrder) -> tuple[dict[str, object], int]:
    """Import what the order's ``preload`` names, then its ``compiler``.

    Return what the parent has to know of it, and the time that the compiler's took, in ns.
    """
    before = modules()
    record = ImportRecord()
    with record.during(""):
        failed = _import_each(order.preload or ())
        loaded = {name: file for name, file in modules().items() if name not in before}
        if tempfile.tempdir is not None:
            failed = failed or "a library chose its folder of temporary files as it was imported"
        began_ns = monotonic_ns()
        if not failed and "torch" in sys.modules:
            failed = _import_each(importable(order.compiler))
            forget_places()
        compiler_ns = monotonic_ns() - began_ns
    known = {name.partition(".")[0] for name in (*before, *loaded)}
    later = {name.partition(".")[0] for name in modules()} - known
    did = replace(record.of(""), state=torch_state())
    answer: dict[str, object] = {
        "failed": failed,
        "imports": asdict(did),
        "modules": loaded,
        "compiler": tuple(sorted(later)),
    }
    return answer, compiler_ns


def _import_each(names: Sequence[str]) -> str:
    """Import modules; return why one failed, or nothing."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 (a library's: the parent gets it)
            return f"{name}: {where_it_failed(error, ())}"
    return ""


def serve_forks(
    order: WorkOrder,
    channel: Channel,
    become_worker: Callable[[WorkerDescriptors, int], None],
    did: Mapping[str, object],
) -> None:
    """Fork as often as the parent asks; return when it hangs up.

    ``become_worker(ends, forked_ns)`` is called in each child and must not return.
    ``did`` is what the parent has to know of the imports.
    """
    token = _place_of(TOKEN)
    unfit = unforkable_reason(kinds(order.devices))
    if not unfit and token is None:
        unfit = "this system does not show a process its own environment"
    freeze()
    channel.send("imported", unfit=unfit, **did)
    requests = socket.socket(fileno=order.fork_socket)
    alive: set[int] = set()
    with _EndedChildren() as ended:
        while True:
            ready, _, _ = select.select([requests.fileno(), ended.fileno()], [], [])
            if ended.fileno() in ready:
                ended.clear()
                for pid in [pid for pid in alive if end_group_of(pid)]:
                    alive.remove(pid)
                    _, status = os.waitpid(pid, 0)
                    channel.send("ended", pid=pid, code=os.waitstatus_to_exitcode(status))
            if requests.fileno() not in ready:
                continue
            order_text, descriptors, _, _ = socket.recv_fds(
                requests, _LARGEST_REQUEST, _MOST_DESCRIPTORS
            )
            if not order_text:
                return
            flush()  # what is still buffered would be printed by both
            pid = os.fork()
            if pid == 0:
                forked_ns = monotonic_ns()
                os.setsid()
                ended.forget()
                requests.close()
                output, orders, results, *turns = descriptors
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                environment = json.loads(order_text)
                if token and len(value := environment[TOKEN].encode()) == token[1]:
                    # /proc shows what a process was started with, and a fork its parent's: workers
                    # of one ancestor, and all that they leave behind, would look alike
                    ctypes.memmove(token[0], value, len(value))
                os.environ.update(environment)
                become_worker(WorkerDescriptors(orders, results, *turns or (-1,)), forked_ns)
            alive.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
            channel.send("forked", pid=pid)


class _EndedChildren:
    """Becomes readable when a child ends: a pipe that Python writes each SIGCHLD to."""

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        self._handler = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._descriptor = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()

    def fileno(self) -> int:
        """Return what ``select`` waits for."""
        return self._read

    def clear(self) -> None:
        """Take what is there: who ended is asked of the children themselves."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass

    def forget(self) -> None:
        """Leave signals as the imports left them."""
        signal.set_wakeup_fd(self._descriptor)
        signal.signal(signal.SIGCHLD, self._handler or signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)


def end_group_of(pid: int) -> bool:
    """Say whether a worker has ended; kill what it left in its group first.

    Its number can't be another's until its end was asked for.
    """
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        return False
    with contextlib.suppress(ProcessLookupError):  # it died before it had a group
        os.killpg(pid, signal.SIGKILL)
    return True


def _place_of(variable: str) -> tuple[int, int] | None:
    """Return where this process has the value of ``variable`` that it was started with, its length.

    That is the memory that ``/proc/self/environ`` shows. None where it can't be found.
    """
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])
        shown = Path("/proc/self/environ").read_bytes()
    except (OSError, ValueError, IndexError):
        return None
    name = b"\0" + variable.encode() + b"="
    at = (b"\0" + shown).find(name)
    if start == 0 or at < 0 or end - start < len(shown):
        return None
    at += len(name) - 1
    return start + at, shown.find(b"\0", at) - at


def unforkable_reason(kinds: Sequence[DeviceKind]) -> str:
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
    in_use = next(filter(None, (kind.in_use() for kind in kinds)), "")
    return f"its imports initialised {in_use}" if in_use else ""
