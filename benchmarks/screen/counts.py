"""Count what a case does on one side, in a forked process, without timing it.

Counted are operators with their tensors' types, shapes and strides, sizes of allocations, Dynamo's
graphs, and of Python code the calls and lines of each function. The work of other processes isn't
seen, so a case that has some can't be screened.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from perfci.instruments.memory import _allocations
from perfci.instruments.operators import _events
from perfci.metrics.graphs import counters, frames_traced
from perfci.model.worker import WorkOrder
from perfci.worker.loading import imported, prepare_path, set_up
from perfci.worker.measurement import fix_threads_and_seed

CALLS = 8
"""Calls that are counted, after the first."""
KINDS = ("operators", "strides", "allocations", "graphs", "calls", "lines")
_LONGEST_S = 120
_TIMED_S, _MOST_TIMED = 0.1, 200
_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}
"""Audit events of a process that is started."""


@dataclass(slots=True)
class Counts:
    """What one process counted, each kind by its own keys, and the best time of a call in s.

    ``processes`` tells whether the case started others. ``loaded`` has the files of the side's tree
    that were imported.
    """

    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    call_s: float = 0.0
    processes: bool = False
    loaded: list[str] = field(default_factory=list)
    failure: str = ""


def cases_of(
    root: Path, python_path: Sequence[str], files: Sequence[Path]
) -> list[tuple[Path, str]]:
    """Return the files with the ids of their cases. They are imported in a process of its own."""

    def listed() -> list[list[str]]:
        return [
            [str(file), point.id]
            for file in files
            for benchmark in imported(_order(root, python_path, file, ""))
            for point in benchmark.points()
        ]

    return [(Path(file), case) for file, case in _in_fork(root, python_path, listed)]


def counts(root: Path, python_path: Sequence[str], file: Path, case: str) -> Counts:
    """Count one case of the tree ``root``."""
    order = _order(root, python_path, file, case)

    def counted() -> dict[str, Any]:
        sketch = _counted(order)
        return {name: getattr(sketch, name) for name in Counts.__slots__}

    return Counts(**_in_fork(root, python_path, counted))


def _order(root: Path, python_path: Sequence[str], file: Path, case: str) -> WorkOrder:
    return WorkOrder(str(root), tuple(python_path), benchmark_file=str(file), case=case)


def _in_fork(root: Path, python_path: Sequence[str], task: Callable[[], Any]) -> Any:
    """Return what ``task`` returns in a forked process, whose own processes end with it."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(_LONGEST_S)
        os.chdir(root)
        for stream in (1, 2):  # the profiler writes there, and so do benchmarks
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            prepare_path(tuple(python_path))
            answer = task()
        except BaseException as error:  # noqa: BLE001 (reported by the parent)
            answer = {"failure": f"{type(error).__name__}: {error}"[:300]}
        os.write(theirs, f"{json.dumps(answer)}\n".encode())  # other processes may keep it open
        os._exit(0)
    os.close(theirs)
    try:
        with os.fdopen(ours) as pipe:
            text = pipe.readline()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return json.loads(text) if text else {"failure": "it ended without an answer"}


def _counted(order: WorkOrder) -> Counts:
    sketch, watch = Counts(), _Watch(order.root)
    started: list[str] = []

    def note(event: str, _: tuple[object, ...]) -> None:
        if event in _STARTS:
            started.append(event)

    sys.addaudithook(note)
    os.register_at_fork(before=lambda: started.append("fork"))
    traced = frames_traced()

    def go_on(work: Any) -> None:
        fix_threads_and_seed(order, seed=False)
        watch.stop_python()
        with watch.torch():
            work.prepared_call()
        compiled = frames_traced() > traced
        if compiled:  # what else a compiling call runs depends on what the caches had
            watch.counted["operators"].clear()
            watch.counted["allocations"].clear()
            watch.counted["graphs"].update(counters()["stats"])
        for _ in range(CALLS - 1):  # a call in eight that differs is in each of the parts below
            work.prepared_call()
        started.clear()  # a compiler's processes have ended
        with watch.torch():
            _calls(work)
        watch.start_python()
        _calls(work)
        watch.stop_python()
        if not compiled:
            with watch.strides():
                _calls(work)
        sketch.processes = bool(started) or _has_children()
        sketch.call_s = _best_s(work.prepared_call)

    watch.start_python(own_only=True)
    benchmarks = imported(order)
    fix_threads_and_seed(order)
    set_up(order, benchmarks)(go_on)
    sketch.counted = {kind: dict(watch.counted[kind]) for kind in KINDS}
    sketch.loaded = sorted(
        os.path.relpath(file, order.root)
        for module in list(sys.modules.values())
        for file in [getattr(module, "__file__", None) or ""]
        if file.startswith(f"{order.root}/")
    )
    return sketch


def _has_children() -> bool:
    tasks = Path("/proc/self/task").glob("*/children")
    return any(task.read_text().strip() for task in tasks)


def _calls(work: Any) -> None:
    for _ in range(CALLS):
        work.prepared_call()


def _best_s(call: Callable[[], Any]) -> float:
    taken: list[float] = []
    end = time.perf_counter() + _TIMED_S
    while len(taken) < 3 or (len(taken) < _MOST_TIMED and time.perf_counter() < end):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


class _Watch:
    """Counts by kind and key, while it is switched on."""

    def __init__(self, root: str) -> None:
        self.counted: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        self._root = f"{root}/"
        self._own_only = False

    def start_python(self, *, own_only: bool = False) -> None:
        """Count calls of functions, and lines of the tree's functions, from here on.

        With ``own_only``, only calls by the tree's own code count. What libraries do at their
        import varies: they order types by hash, which is their address.
        """
        self._own_only = own_only
        threading.setprofile(self._profile)
        threading.settrace(self._trace)
        sys.setprofile(self._profile)
        sys.settrace(self._trace)

    def stop_python(self) -> None:
        """Count no more Python code."""
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)
        threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        if self._own_only and not self._by_own_code(frame, event):
            return
        if event == "call":
            self.counted["calls"][self._name(frame)] += 1
        elif event == "c_call":
            name = getattr(function, "__qualname__", "")
            self.counted["calls"][f"{getattr(function, '__module__', '')}.{name}"] += 1

    def _by_own_code(self, frame: FrameType, event: str) -> bool:
        caller = frame.f_back if event == "call" else frame
        return caller is not None and caller.f_code.co_filename.startswith(self._root)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            return self._trace if frame.f_code.co_filename.startswith(self._root) else None
        if event == "line":
            self.counted["lines"][self._name(frame)] += 1
        return self._trace

    def _name(self, frame: FrameType) -> str:
        code = frame.f_code
        return f"{code.co_filename.removeprefix(self._root)}:{code.co_qualname}"

    @contextmanager
    def torch(self) -> Iterator[None]:
        """Count operators and allocations until the block ends."""
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        with profile(activities=activities, record_shapes=True, profile_memory=True) as profiler:
            yield
        host, device = _events(profiler)
        for event in host:
            self.counted["operators"][f"{event.name} {event.signature}"] += 1
        for name, count, _ in device:
            self.counted["operators"][f"device {name}"] += count
        tree = profiler.profiler.kineto_results.experimental_event_tree()
        for each in _allocations(tree):
            self.counted["allocations"][f"{each.device} {each.size}"] += 1

    @contextmanager
    def strides(self) -> Iterator[None]:
        """Count operators with the strides of their tensors until the block ends."""
        from torch import Tensor
        from torch.utils._python_dispatch import TorchDispatchMode

        counter = self.counted["strides"]

        class Reading(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(
                self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                strided = [each.stride() for each in args if isinstance(each, Tensor)]
                counter[f"{func} {strided}"] += 1
                return func(*args, **(kwargs or {}))

        with Reading():
            yield
