"""Finds out whether this process may fork. Threads and a device in use don't survive in the child.

Some libraries stop their threads before each fork and start them again when they are needed, by
``pthread_atfork``. OpenBLAS is one: it comes with NumPy, so importing torch starts as many threads
as a worker has cores. A trial fork shows which threads stay, and its child whether CUDA works.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from perfci.clock import monotonic_ns

_DEVICES = ("/dev/kfd", "/dev/dri")
"""Files that ROCm opens. NVIDIA's files tell nothing: NVML opens the same files as CUDA."""
_TRIAL_NS = 10_000_000_000
"""Longest wait for the trial fork's end."""
_END_NS = 1_000_000_000
"""Longest wait until the kernel no longer lists threads that have ended."""
_NVML = "libnvidia-ml.so.1"
_BINDINGS = ("pynvml", "py3nvml.py3nvml")
"""Bindings of NVML. Their users hold handles once ``nvmlLib`` is set. torch imports the first."""
_MOST_INITIALISATIONS = 100
_CAN_FORK, _TRIAL_FAILED, _CUDA_LOST = 0, 1, 2
"""Exit codes of the trial fork's child."""
_NOT_INITIALIZED = 3
"""``CUDA_ERROR_NOT_INITIALIZED``: the driver's answer in a fork of a process that uses CUDA."""


def unforkable_reason() -> str:
    """Return why this process must not fork, or an empty string.

    The reason is the predicate of a sentence: the caller puts a subject before it.
    """
    _shut_nvml_down()
    code = _trial_fork()
    if code == _CUDA_LOST:
        return "initialised CUDA"
    if code is None:
        return "can't be forked: a trial fork did not end"
    if code != _CAN_FORK:
        return "can't be forked: a trial fork failed"
    if _has_threads():
        return "left threads running"
    opened = next((file for file in _open_files() if file.startswith(_DEVICES)), "")
    return f"opened {opened}" if opened else ""


def _shut_nvml_down() -> None:
    """Undo the initialisations of NVML. A driver of version 580 keeps a thread until then.

    torch initialises NVML each time it counts devices, and never undoes that. Where a library holds
    handles, NVML is left alone: they would not be valid any more.
    """
    bindings = (sys.modules.get(name) for name in _BINDINGS)
    if any(getattr(binding, "nvmlLib", None) for binding in bindings):
        return
    try:
        nvml = ctypes.CDLL(_NVML, mode=os.RTLD_NOLOAD)
    except OSError:  # nothing has loaded it
        return
    for _ in range(_MOST_INITIALISATIONS):
        if nvml.nvmlShutdown():  # it isn't initialised any more
            return


def _trial_fork() -> int | None:
    """Fork a child that ends at once. Return its exit code, or None if it had to be killed.

    The C library forks, because ``os.fork`` would count as the start of a process by the benchmark.
    """
    c_library = ctypes.PyDLL(None)  # PyDLL keeps the GIL, which the child needs
    pid = int(c_library.fork())
    if pid == 0:
        code = _TRIAL_FAILED
        try:
            code = _CUDA_LOST if _cuda_is_lost() else _CAN_FORK
        finally:
            c_library._exit(code)  # noqa: SLF001 (its name in C)
    until = monotonic_ns() + _TRIAL_NS
    while monotonic_ns() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _cuda_is_lost() -> bool:
    """Return whether this fork can't use CUDA because its parent has initialised it."""
    torch = sys.modules.get("torch")
    is_lost = getattr(getattr(torch, "cuda", None), "_is_in_bad_fork", None)  # torch's own, private
    if is_lost is not None and is_lost():
        return True
    if "/libcuda.so" not in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"):
        return False
    return int(ctypes.CDLL("libcuda.so.1").cuInit(0)) == _NOT_INITIALIZED


def _has_threads() -> bool:
    """Return whether there are other threads. Wait for ended ones, which the kernel still lists."""
    until = monotonic_ns() + _END_NS
    while len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 (names are counted, not used)
        if monotonic_ns() > until:
            return True
        time.sleep(0.005)
    return False


def _open_files() -> list[str]:
    """Return the targets of this process's open descriptors: paths, or names of pipes and such."""
    files = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            files.append(os.readlink(link))  # noqa: PTH115 (a path that needs not exist)
        except OSError:  # the descriptor of this very listing
            continue
    return files
