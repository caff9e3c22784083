"""The worker's life: carry out one order, or report its failure, and exit the shortest way.

The order may be to fork workers. Such a **fork server** has imported one side's benchmark file, or
the libraries that both sides need, but no code of either side: then each worker that it forks
imports its side's code itself. It is a fresh process, and its start is counted as part of each
worker's cold start. It forks only if no thread is left and no device is in use (``api.forking``).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from perfci.api.definition import Benchmark
from perfci.api.forking import unforkable_reason
from perfci.clock import monotonic_ns
from perfci.errors import Unusable
from perfci.metrics import use
from perfci.model.worker import WRONG_CODE, WorkOrder
from perfci.worker.bursts import Garbage
from perfci.worker.devices import DeviceKind, in_use, kinds
from perfci.worker.hook.perfci_watch import CodeWatch, begin_in_worker
from perfci.worker.imports import import_libraries, use_own_places
from perfci.worker.loading import imported, prepare_path
from perfci.worker.measurement import StartClock, measure
from perfci.worker.protocol import (
    Channel,
    WorkerDescriptors,
    decode_order,
    flush,
    free_frames,
    kind_of,
    log,
    where_it_failed,
)

_LARGEST_REQUEST = 1 << 16
"""Most bytes of a request to fork a worker, which is the worker's environment as JSON."""
_MOST_DESCRIPTORS = 16
"""Most descriptors that come with a request."""
TOKEN = "PERFCI_WORKER"  # noqa: S105 (no password)
"""The variable by which the parent finds all processes that a worker started."""


def main(ends: WorkerDescriptors, spawned_ns: int, started_ns: int) -> NoReturn:
    """Serve the order of a fresh process: discovery, one case, or forks."""
    start = StartClock(spawned_ns, interpreter_ns=started_ns - spawned_ns)
    _serve_and_leave(ends, partial(_serve, start))


def _serve_and_leave(
    ends: WorkerDescriptors, serve: Callable[[WorkOrder, Channel], None]
) -> NoReturn:
    """Serve one order and leave by ``os._exit``. A regular exit with torch would take 0.4 s."""
    channel = Channel(ends)
    line = channel.receive()
    if not line:
        os._exit(0)
    order = decode_order(line)
    code = 0
    try:
        serve(order, channel)
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: reported, not hidden)
        if isinstance(error, MemoryError):
            free_frames(error)
        log(error)  # before the message: the parent cuts the log when it gets the message
        channel.send(
            "failed",
            stage=channel.stage,
            kind=kind_of(error),
            message=where_it_failed(error, (order.root,)),
        )
        code = 1
    flush()
    os._exit(code)


def _serve(start: StartClock, order: WorkOrder, channel: Channel) -> None:
    """Carry out any kind of ``order`` in a fresh process."""
    if order.preload is None:
        _serve_side(start, order, channel)
        return
    use(order.metrics)
    channel.enter("import")
    began_ns = monotonic_ns()
    report, compiler_ns = import_libraries(order)
    imports_ns = monotonic_ns() - began_ns - compiler_ns
    start = replace(start, imports_ns=imports_ns, compiler_ns=compiler_ns)
    serve_forks(order, channel, start, _serve_side, report)


def _serve_side(start: StartClock, order: WorkOrder, channel: Channel) -> None:
    """Import the side's benchmark files, and carry out the order for them."""
    os.chdir(order.root)
    prepare_path(order.python_path)
    watch = begin_in_worker(os.environ)
    if not (order.case or order.fork_socket >= 0):
        _discover(order, channel, watch)
        return
    use(order.metrics)
    use_own_places()
    if order.instruments:
        from perfci.worker.looking_inside import look_inside

        look_inside(order, channel)
        return
    channel.enter("import")
    began_ns = monotonic_ns()
    benchmarks = imported(order)
    start = replace(start, imports_ns=start.imports_ns + monotonic_ns() - began_ns)
    if order.case:
        _measure(start, order, channel, benchmarks, watch)
        return

    def measure_case(start: StartClock, order: WorkOrder, channel: Channel) -> None:
        if watch:
            watch.go_on(os.environ)
        _measure(start, order, channel, benchmarks, watch)

    if watch:
        watch.keeps_openings = False  # a forked worker isn't a process that the benchmark starts
    serve_forks(order, channel, start, measure_case, {})


def _discover(order: WorkOrder, channel: Channel, watch: CodeWatch | None) -> None:
    channel.enter("import")
    from perfci.worker.discovery import discover

    gc.disable()  # nothing is measured here, and it takes a tenth of torch's import
    discovery = discover(order)
    gc.enable()
    _look_and_check(watch)
    channel.send("discovery", discovery=discovery)


def _measure(
    start: StartClock,
    order: WorkOrder,
    channel: Channel,
    benchmarks: Sequence[Benchmark],
    watch: CodeWatch | None,
) -> None:
    measurement = measure(order, channel, start, benchmarks)
    _look_and_check(watch)  # last of all: what a later call loads counts too
    channel.send("output", measurement=asdict(measurement))


def _look_and_check(watch: CodeWatch | None) -> None:
    """Have a watched worker write down all that it loaded, for the parent's guard."""
    try:
        if watch:
            watch.look()
    except OSError as error:
        raise Unusable(
            WRONG_CODE,
            f"this worker's record of the code it ran could not be written ({error.strerror})\n"
            "Don't change the session's files (below TMPDIR's parent), and leave free space there.",
        ) from error


# Forking workers.


def serve_forks(
    order: WorkOrder,
    channel: Channel,
    start: StartClock,
    serve: Callable[[StartClock, WorkOrder, Channel], None],
    import_report: Mapping[str, object],
) -> None:
    """Fork a worker for each request of the parent. Return when the parent hangs up.

    ``serve(start, order, channel)`` is called in each child. ``import_report`` is sent to the
    parent first.
    """
    import socket  # takes 3 ms; no other worker needs it

    ready_ns = monotonic_ns()
    token = _environment_value(TOKEN)
    unfit = _unfit_reason(kinds(order.devices))
    if not unfit and token is None:
        unfit = "this system does not show a process its own environment"
    Garbage().freeze()
    channel.send("imported", unfit=unfit, **import_report)
    requests = socket.socket(fileno=order.fork_socket)
    alive: dict[int, int] = {}  # workers by a descriptor that becomes readable when one ends
    while True:
        ready, _, _ = select.select([requests.fileno(), *alive], [], [])
        for ended in alive.keys() & {*ready}:
            os.close(ended)
            pid = alive.pop(ended)
            channel.send("ended", pid=pid, code=_collect(pid))
        if requests.fileno() not in ready:
            continue
        request = socket.recv_fds(requests, _LARGEST_REQUEST, _MOST_DESCRIPTORS)
        order_text, descriptors, *_ = request
        if not order_text:
            return
        flush()  # otherwise both processes would print what is still buffered
        pid = os.fork()
        if pid == 0:
            start = replace(start, waited_ns=monotonic_ns() - ready_ns)
            gc.unfreeze()  # a collection in the side's code costs what it costs without a fork
            os.setsid()
            for descriptor in alive:
                os.close(descriptor)
            requests.close()
            _take_environment(json.loads(order_text), token)
            _serve_and_leave(_taken_ends(*descriptors), partial(serve, start))
        alive[os.pidfd_open(pid)] = pid
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send("forked", pid=pid)


def _collect(pid: int) -> int:
    """Kill the group of a worker that has ended, and return its exit code."""
    # the group's id can't have been reused: the worker is not collected yet
    with contextlib.suppress(ProcessLookupError):  # it died before it had a group
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _taken_ends(output: int, orders: int, results: int, turns: int = -1) -> WorkerDescriptors:
    """Make ``output`` this process's output, and return the other ends of its pipes."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    return WorkerDescriptors(orders, results, turns)


def _take_environment(environment: Mapping[str, str], token: tuple[int, int] | None) -> None:
    """Set a fork's variables, and overwrite its parent's token in the memory that /proc shows.

    ``token`` is the address and the length of that token. Without this, the workers of one
    fork server, and the processes that they leave behind, would all show the same token.
    """
    if token and len(value := environment[TOKEN].encode()) == token[1]:
        ctypes.memmove(token[0], value, len(value))
    os.environ.update(environment)


def _unfit_reason(kinds: Sequence[DeviceKind]) -> str:
    """Return why this process must not fork workers, or an empty string."""
    first = next(iter(in_use(kinds)), "")
    reason = f"initialised {first}" if first else unforkable_reason()
    return f"its imports {reason}" if reason else ""


def _environment_value(variable: str) -> tuple[int, int] | None:
    """Return the address and the length of the variable's initial value, or None.

    The value lies in the memory of this process that ``/proc/self/environ`` shows.
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
