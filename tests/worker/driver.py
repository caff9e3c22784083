"""A worker's other end: the real bootstrap process over real pipes, and nothing of the parent's."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import perfci.worker
from perfci.model.worker import WorkOrder
from perfci.worker.protocol import encode
from tests.builders.warm import Warm, WarmWorker

BOOTSTRAP = Path(perfci.worker.__file__).with_name("bootstrap.py")
MISBEHAVING = Path(__file__).parent.parent / "data" / "misbehaving"
WITHIN_S = 60.0
Process = subprocess.Popen[bytes] | WarmWorker
OF_A_DEVICE = (*("peak_device_memory", "peak_device_memory_reserved", "device_time_p50"),)
"""The metrics that only what runs on a device has."""


def samples(bursts: Iterable[str]) -> list[int]:
    """Return the encoded samples of ``bursts``, in ns."""
    values = array("q")
    for encoded in bursts:
        values.frombytes(base64.b64decode(encoded))
    return list(values)


class Driver:
    """One living worker. Ended, with all that shares its session, when the block is left."""

    def __init__(
        self,
        order: WorkOrder,
        *,
        python: str = sys.executable,
        log: Path,
        turns: int = -1,
        warm: Warm | None = None,
        **environment: str,
    ) -> None:
        self.log = log
        self.stages: list[str] = []
        self._buffer = b""
        order_read, self._orders = os.pipe()
        self._results, result_write = os.pipe()
        # PYTHONUNBUFFERED, say, would hide that what was printed has to be flushed
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "TORCH_LOGS"))
        }
        environment = {**kept, **environment}
        with log.open("wb") as output:
            if warm is not None:
                ends = (order_read, result_write, output.fileno())
                self.process: Process = warm.start(environment, order.root, *ends)
            else:
                numbers = (order_read, result_write, turns, time.monotonic_ns())
                self.process = subprocess.Popen(
                    [python, "-P", str(BOOTSTRAP), *map(str, numbers)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=tuple(one for one in (order_read, result_write, turns) if one >= 0),
                    cwd=order.root,
                    env=environment,
                    start_new_session=True,
                )
        os.close(order_read)
        os.close(result_write)
        self.send(asdict(order))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._results)

    def send(self, message: dict[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else encode(message)
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, data)

    def hang_up(self) -> None:
        """Close the order pipe, as a parent that died does."""
        with contextlib.suppress(OSError):
            os.close(self._orders)

    def next(self) -> dict[str, Any] | None:
        """Return the next message, or None when the worker closed its pipe."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._results], [], [], WITHIN_S)
            assert ready, f"no message within {WITHIN_S} s; log: {self.printed()[-2000:]}"
            chunk = os.read(self._results, 1 << 20)
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def wait_for(self, said: str) -> dict[str, Any]:
        """Return the first message that isn't a stage; it has to be of kind ``said``."""
        while (message := self.next()) is not None and message["say"] == "stage":
            self.stages.append(message["stage"])
        assert message is not None, f"the worker is gone; log: {self.printed()[-2000:]}"
        assert message["say"] == said, message
        return message

    def end(self) -> int:
        """Return the exit code of a worker that has said its last."""
        assert self.next() is None
        return self.process.wait(WITHIN_S)

    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


class Bench:
    """A folder with benchmark files, standing for a side's tree.

    With ``warm``, its workers are forked from a process that has torch: for tests of what they do
    once they have imported it.
    """

    def __init__(self, root: Path, warm: Warm | None = None) -> None:
        self.root = root
        self.warm = warm
        self.folder = root / "benchmarks"
        self.folder.mkdir(parents=True)

    def write(self, source: str, name: str = "benchmarks/bench_one.py") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return path

    def misbehaving(self, name: str) -> Path:
        return Path(shutil.copy(MISBEHAVING / f"bench_{name}.py", self.folder))

    def order(self, path: Path | None = None, case: str = "", **fields: Any) -> WorkOrder:
        """Return the order for one case of one file, or, without a case, for discovery."""
        files = tuple(map(str, sorted(self.folder.rglob("bench_*.py"))))
        order = WorkOrder(
            root=str(self.root),
            python_path=(str(self.root),),
            benchmark_files=() if case else files,
            benchmark_file=str(path or "") if case else "",
            case=case,
            warmup_s=0.05,
        )
        return replace(order, **fields)

    def start(self, order: WorkOrder, **options: Any) -> Driver:
        return Driver(order, log=self.root / "log.txt", warm=self.warm, **options)

    def discover(
        self, *, python: str = sys.executable, env: dict[str, str] | None = None, **fields: Any
    ) -> dict[str, Any]:
        with self.start(self.order(**fields), python=python, **(env or {})) as worker:
            found = worker.wait_for("discovery")["discovery"]
            assert worker.end() == 0
        return found

    def measure(
        self, source: str | Path, case: str = "case", *, blocks: int = 2, **fields: Any
    ) -> dict[str, Any]:
        """Measure one case from start to end and return its ``Measurement``."""
        options = {name: fields.pop(name) for name in list(fields) if name in {"python", "env"}}
        path = source if isinstance(source, Path) else self.write(source)
        order = self.order(path, case, **fields)
        environment = options.pop("env", {})
        with self.start(order, **options, **environment) as worker:
            call_s = worker.wait_for("ready")["call_s"]
            calls = max(1, min(500, int(0.005 / (call_s + 1e-6))))
            said = [self.block(worker, calls=calls) for _ in range(blocks)]
            worker.send({"do": "finish"})
            measurement = worker.wait_for("output")["measurement"]
            assert worker.end() == 0
        return {**measurement, "said": said}

    def failure(self, source: str | Path, case: str = "case", **fields: Any) -> dict[str, Any]:
        """Return what a worker says that fails before it is ready."""
        path = source if isinstance(source, Path) else self.write(source)
        with self.start(self.order(path, case, **fields)) as worker:
            failed = worker.wait_for("failed")
            assert worker.end() == 1
        return failed

    @staticmethod
    def block(
        worker: Driver,
        bursts: int = 1,
        calls: int = 1,
        lead_in: int = 0,
        collector: str = "perfci",
    ) -> dict[str, Any]:
        """Let a worker without another one beside it run one block."""
        order = {"lead_ins": [lead_in] * bursts, "calls": calls}
        worker.send({"do": "block", **order, "collector": collector, "turn": None})
        return worker.wait_for("block")


def other_python(version: str) -> str | None:
    """Return an interpreter of that version that really runs: a version manager's shim may not."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    ran = subprocess.run([found, "-c", ""], capture_output=True, check=False)
    return found if ran.returncode == 0 else None
