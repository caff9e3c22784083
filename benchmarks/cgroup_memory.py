"""What sampling sees of the memory of a call's processes, beside what the kernel charges for them.

    systemd-run --user --scope -p Delegate=yes python benchmarks/cgroup_memory.py

Three processes measure each of four kinds of calls as workers do. Needs a cgroup v2 to divide, and
Linux 6.12.
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from perfci.measure.machine.quiet import divide, remove_worker, undivided_reason
from perfci.measure.process_cleanup import undivide
from perfci.metrics import Scene
from perfci.metrics.memory import Memory
from perfci.metrics.observed.processes import own_cgroup

MIB = 1 << 20
METRICS = ("host_memory_over_setup", "cgroup_memory_over_setup")
WORKERS = 3
HOLD = (sys.executable, "-I", "-S", "-c", "x = b'1' * (150 << 20)")
WRITE = ("sh", "-c", "cd ${TMPDIR:-/tmp} && head -c 100M /dev/zero > written && rm written")


def two_of_a_pool() -> Callable[[], object]:
    """150 MiB each, for 0.1 s."""
    pool = multiprocessing.get_context("fork").Pool(2)
    return lambda: pool.map(hold, range(2), chunksize=1)


def hold(_: int) -> int:
    held = b"1" * (150 << 20)
    time.sleep(0.1)
    return len(held)


def a_subprocess() -> Callable[[], object]:
    """150 MiB, and it ends at once."""
    return lambda: subprocess.run(HOLD, check=True)


def a_subprocess_unseen() -> Callable[[], object]:
    """The same, by a call that keeps the interpreter's lock: no thread can sample."""
    line = f'{" ".join(HOLD[:-1])} "{HOLD[-1]}"'.encode()
    return lambda: ctypes.PyDLL(None).system(line)


def a_file_written() -> Callable[[], object]:
    """100 MiB written to a file, which is removed."""
    return lambda: subprocess.run(WRITE, check=True)


def measured(set_up: Callable[[], Callable[[], object]]) -> dict[str, float]:
    """Return what a fork of this process reads, as a worker would."""
    token = secrets.token_hex(8)
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.environ["PERFCI_WORKER"] = token
        memory = Memory(Scene(order=None, collect=partial(_call, gc.collect)))
        memory.before_setup()
        memory.scene.once = partial(_call, set_up())
        memory.set_up()
        memory.warm()
        memory.scene.once()
        os.write(sink, json.dumps(dict(memory.after_bursts().values)).encode() + b"\n")
        signal.pause()
    os.close(sink)
    with open(source, "rb") as answer:  # noqa: PTH123 (a descriptor)
        line = answer.readline()  # its pool has the other end, too
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    remove_worker(token)
    return dict(json.loads(line))


def main() -> int:
    """Measure, and print a line for each kind of call."""
    if why := undivided_reason(own_cgroup()):
        raise SystemExit(f"no cgroup to divide: {why}")
    divided = divide()
    try:
        print(f"Linux {os.uname().release}: median and range of {WORKERS} workers, MiB")
        print("| calls | sampled | charged |\n|---|--:|--:|", flush=True)
        for set_up in (two_of_a_pool, a_subprocess, a_subprocess_unseen, a_file_written):
            values = [measured(set_up) for _ in range(WORKERS)]
            cells = (_cell([one[name] / MIB for one in values]) for name in METRICS)
            print(f"| {set_up.__name__.replace('_', ' ')} | {' | '.join(cells)} |", flush=True)
    finally:
        undivide(Path(divided.leaf), "-memory" if divided.enabled else "")
    return 0


def _call(call: Callable[[], object]) -> None:
    call()


def _cell(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} … {max(values):.1f})"


if __name__ == "__main__":
    raise SystemExit(main())
