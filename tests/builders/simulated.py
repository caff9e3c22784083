"""An executor without processes: real benchmark files, simulated workers, and no time that passes.

What a call costs is read from its code: `sum(range(500))` takes 500 loops, `time.sleep(1)` a second
of the simulated clock. So a slower commit is one whose file says so, as it is with real workers.
Noise is drawn from a seed.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import sys
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from perfci.collector import Work
from perfci.measure.workers import Launch, TreeDeleted, Worker, WorkerEnded
from perfci.model.worker import Measurement, WorkOrder
from perfci.worker.bursts import encoded
from perfci.worker.discovery import discover
from perfci.worker.hook.perfci_watch import VARIABLE
from perfci.worker.loading import PREFIX, imported, prepare_path, set_up
from perfci.worker.protocol import kind_of, user_traceback, where_it_failed

LOOP_S = 20e-9
CALL_S = 1e-6
START_S, FORK_S = 0.3, 0.02
MOST_SAMPLES = 6
"""A burst has no more: nobody needs them."""
_EXIT, _KILL, _SLEEP = os._exit, os.kill, time.sleep
_BETWEEN, _END = "\x1f", "\0"
_HOST = "no accelerator"
_MISSING = {
    "peak_device_memory": _HOST,
    "peak_device_memory_reserved": _HOST,
    "device_time_p50": _HOST,
    "accuracy_loss": "only inference and training steps have a reference",
    "graph_breaks": "not compiled",
    "recompiles": "not compiled",
    "graphs": "not compiled",
}


def cost_of(work: Work) -> float:
    """Return what a call costs, in s: the whole numbers in its code, as loops."""
    code = getattr(work.call, "__code__", None)
    loops = sum(one for one in code.co_consts if type(one) is int) if code else 0
    return CALL_S + LOOP_S * loops


class Simulated:
    """Starts simulated workers, and has their clock.

    ``spread`` is the standard deviation of a worker's log latency, ``seed`` draws it; ``latency``
    replaces what the code says. ``before`` is called as a worker starts, with its order and how
    many of its case and side there were: what it raises, the session meets; where it returns the
    kind and message of a failure, the worker ends with them. ``growth`` is what a worker that
    measures it finds. ``delayed`` is how many bursts of each block the kernel keeps off their core,
    for as long as two of their calls take. ``servers`` counts the processes that forked, ``living``
    those that have not ended.
    ``begun`` is the side of each worker of a case, ``at_once`` how many lived together at most.
    """

    def __init__(
        self,
        *,
        spread: float = 0.003,
        seed: int = 0,
        latency: Callable[[WorkOrder, int], float] | None = None,
        before: Callable[[WorkOrder, int], tuple[str, str] | None] = lambda *_: None,
        growth: Callable[[WorkOrder], float] = lambda _: 0.0,
        delayed: Callable[[WorkOrder], int] = lambda _: 0,
    ) -> None:
        self.spread = spread
        self.seed = seed
        self.latency = latency
        self.before = before
        self.growth = growth
        self.delayed = delayed
        self.started: Counter[tuple[str, str]] = Counter()
        self.servers = 0
        self.living = 0
        self.begun: list[str] = []
        self.alive = self.at_once = 0
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    @contextmanager
    def guarded(self, token: str) -> Iterator[None]:
        yield

    def start(
        self,
        order: WorkOrder,
        launch: Launch,
        *,
        budget_end: float,
        turns: int = -1,
    ) -> Worker:
        return SimulatedWorker(self, order, launch.environment, START_S, budget_end)

    def fork_server(
        self, order: WorkOrder, launch: Launch, *, budget_end: float
    ) -> SimulatedServer:
        self.servers += 1
        self.living += 1
        return SimulatedServer(self, order, budget_end)


class SimulatedServer:
    """A process that forks workers, which is always fit to."""

    preloaded = None  # all that is simulated runs in this one process

    def __init__(self, executor: Simulated, order: WorkOrder, budget_end: float) -> None:
        self._executor = executor
        order = replace(order, fork_socket=0)
        self._worker = SimulatedWorker(executor, order, {}, START_S, budget_end)

    def imported(self, timeout_s: float) -> str:
        try:
            self._worker.expect("imported", timeout_s)
        except WorkerEnded as ended:
            return ended.failure.message
        return ""

    def alive(self) -> bool:
        return True

    def fork(
        self,
        order: WorkOrder,
        environment: Mapping[str, str],
        *,
        budget_end: float,
        turns: int = -1,
    ) -> Worker:
        return SimulatedWorker(self._executor, order, environment, FORK_S, budget_end)

    def close(self) -> None:
        self._worker.close()
        self._executor.living -= 1


class SimulatedWorker(Worker):
    """One worker's answers, each with the time that it takes. They are made as they are asked."""

    def __init__(
        self,
        executor: Simulated,
        order: WorkOrder,
        environment: Mapping[str, str],
        start_s: float,
        budget_end: float,
    ) -> None:
        if not Path(order.root).is_dir():
            raise TreeDeleted.at(order.root)
        self.pid = os.getpid()
        self._executor = executor
        self._order = order
        self._environment = environment
        self._start_s = start_s
        self._answers: deque[tuple[float, dict[str, Any]]] = deque()
        self._printed = io.StringIO()
        self._samples: list[array[int]] = []
        self._latency = self._cold_start_s = 0.0
        self._work: Work | None = None
        self._random = Random(0)
        self._died: tuple[str, str] | None = None
        self._slept_s = 0.0
        if order.case:
            executor.begun.append(order.side)
            executor.alive += 1
            executor.at_once = max(executor.at_once, executor.alive)
        super().__init__(order, budget_end, clock=executor.now)

    @property
    def log(self) -> str:
        return self._printed.getvalue()

    def close(self) -> int:
        self._executor.alive -= bool(self._order.case)
        return 0

    def receive(self, deadline: float) -> dict[str, Any] | None:
        if not self._answers or self._died:
            died = self._died or ("exit", "left with exit code 0 before it had measured")
            raise self.ended(*died)
        takes_s, message = self._answers[0]
        if self._executor.time + takes_s > deadline:
            self._executor.time = max(self._executor.time, deadline)
            return None
        self._executor.time += takes_s
        self._answers.popleft()
        return message

    def send(self, message: Mapping[str, Any]) -> None:
        match message.get("do"):
            case "block":
                self._block(message["lead_ins"], message["calls"])
            case "stop":
                pass
            case "finish":
                self._finish()
            case _ if self._order.case:
                self._attempt(self._begin)
            case _ if self._order.fork_socket >= 0:
                self._attempt(self._import)
            case _:
                with self._in_worker():
                    # looking through what is installed takes a third of a second
                    order = replace(self._order, project=(), checkout="")
                    discovery = discover(order)
                    self._say(self._start_s + self._slept_s, "discovery", discovery=discovery)

    def _say(self, takes_s: float, said: str, **fields: Any) -> None:
        self._answers.append((takes_s, {"say": said, **fields}))

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            with self._in_worker():
                step()
        except _Ended as ended:
            self._say(self._start_s, "failed", kind=ended.kind, message=str(ended))
        except BaseException as error:
            if isinstance(error, _OfTheSession):
                raise error.error from error
            roots = (self._order.root,)
            self._printed.write(user_traceback(error))
            message = where_it_failed(error, roots)
            self._say(self._start_s, "failed", kind=kind_of(error), message=message)

    def _import(self) -> None:
        if self._order.preload is None:
            imported(self._order)
        self._say(self._start_s, "imported", unfit="")

    def _begin(self) -> None:
        """Import, set up, call once: for real, in this process."""
        order, executor = self._order, self._executor
        key = order.case, order.side
        executor.started[key] += 1
        number = executor.started[key]
        self._random = Random(f"{executor.seed} {key} {number}")
        try:
            ended = executor.before(order, number)
        except BaseException as error:
            raise _OfTheSession(error) from error
        if ended:
            raise _Ended(*ended)
        set_up(order, imported(order), self._measure_work)

    def _measure_work(self, work: Work) -> None:
        order, executor = self._order, self._executor
        key = order.case, order.side
        number = executor.started[key]
        before_s, self._slept_s = self._slept_s, 0.0
        work.call()
        cost_s = cost_of(work) + self._slept_s
        seconds = executor.latency(order, number) if executor.latency else cost_s
        self._work = work
        self._latency = seconds * (1.0 + order.inject.get("latency", 0.0)) * self._noise()
        self._cold_start_s = (
            (START_S + before_s + seconds)
            * self._noise(10)
            * (1.0 + order.inject.get("cold_start", 0))
        )
        self._say(0.0, "stage", stage="setup")
        self._say(self._start_s + before_s, "stage", stage="first_call")
        self._say(seconds, "stage", stage="warmup")
        self._say(order.warmup_s, "ready", call_s=seconds, on_device=False, uuids=[])

    def _noise(self, times: float = 1.0) -> float:
        return math.exp(self._random.gauss(0.0, times * self._executor.spread))

    def _block(self, lead_ins: Sequence[int], calls: int) -> None:
        """Run it as fast as it can be drawn: of a burst's samples, few are needed."""
        bursts, calls = len(lead_ins), min(MOST_SAMPLES, calls)
        samples = [int(1e9 * self._latency * self._noise()) for _ in range(bursts * calls)]
        delayed = min(bursts, self._executor.delayed(self._order))
        for place in range(delayed * calls):
            samples[place] *= 3
        if samples:  # none in calls that aren't timed
            self._samples.append(array("q", samples))
        delays = [2 * self._latency * calls] * delayed + [0.0] * (bursts - delayed)
        duration = sum(samples) / 1e9
        self._say(
            duration,
            "block",
            bursts=bursts,
            samples=calls,
            started=self._executor.time,
            duration=duration,
            run_delay=delays,
            set_aside="",
            lead_ins=list(lead_ins),
        )

    def _finish(self) -> None:
        assert self._work is not None
        order, inject = self._order, self._order.inject
        values = {
            "peak_host_memory": 16e6 * (1.0 + inject.get("peak_host_memory", 0.0)),
            "host_memory_over_setup": 56e3 + 16e6 * inject.get("peak_host_memory", 0.0),
        }
        if order.growth:
            values["memory_growth"] = self._executor.growth(order)
        values |= {extra.metric.name: float(extra.measure()) for extra in self._work.metrics}
        values |= {"cold_start": self._cold_start_s, "import_time": 0.003 * self._noise(10)}
        measurement = Measurement(
            samples_ns=tuple(map(encoded, self._samples)),
            blocks=(),
            first_call_s=self._latency,
            values=values,
            missing=dict(_MISSING),
            phases={"interpreter": 0.07, "harness": 0.1, "imports": 0.003, "setup": 1e-4},
            items=self._work.items,
            extra_metrics=tuple(extra.metric for extra in self._work.metrics),
        )
        self._say(0.001, "output", measurement=asdict(measurement))

    @contextmanager
    def _in_worker(self) -> Iterator[None]:
        """Import as a worker does, write down what was, and leave nothing of it behind."""
        path, modules = list(sys.path), set(sys.modules)
        folder, writes = Path.cwd(), sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        root = f"{self._order.root}/"
        try:
            os.chdir(self._order.root)
            prepare_path(self._order.python_path)
            printed = self._printed
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                os._exit, os.kill, time.sleep = self._exit, self._kill, self._sleep
                yield
        finally:
            os._exit, os.kill, time.sleep = _EXIT, _KILL, _SLEEP
            sys.path[:] = path
            sys.dont_write_bytecode = writes
            os.chdir(folder)
            own = []
            for name in set(sys.modules) - modules:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if name.startswith(PREFIX) or file.startswith(root):
                    own.append(("import", file, name))
                    del sys.modules[name]
            self._write_down(own)

    def _exit(self, code: int) -> NoReturn:
        """End this worker alone."""
        self._died = "exit", f"left with exit code {code} before it had measured"
        raise SystemExit(code)

    def _sleep(self, seconds: float) -> None:
        self._slept_s += seconds

    def _kill(self, pid: int, number: int) -> None:
        if pid != os.getpid():
            _KILL(pid, number)
            return
        name = signal.Signals(number).name
        self._died = name, f"crashed with {name}"
        raise SystemExit(-number)

    def _write_down(self, own: list[tuple[str, str, str]]) -> None:
        """Write the events that the parent reads, as a worker's watch does."""
        if VARIABLE not in self._environment:
            return
        settings = dict(
            entry.split(_BETWEEN, 1)
            for entry in self._environment[VARIABLE].split("\x1e")
            if _BETWEEN in entry
        )
        lines = [*sorted(own), ("looked", "", "")]
        with Path(settings["record"]).open("a", encoding="utf-8") as file:
            file.writelines(_BETWEEN.join(line) + _END for line in lines)


class _Ended(Exception):
    """A worker's end that the test asked for."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _OfTheSession(Exception):
    """What the test raises in the session, not in the worker."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error
