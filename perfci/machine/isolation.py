"""What keeps the code that is measured from reading the memory of this user's other processes.

Another process's environment and memory (``/proc/PID/environ``, ``mem``, ptrace) are open to the
same user, so a benchmark could read every secret of perfci, of the shell that started it and of
the runner. The kernel refuses that to a process in a user namespace of its own: it has no rights
over processes outside, be it the same user or root. Such a namespace changes no process id, no
file and no device, so measuring goes on as before. Where the kernel doesn't allow one, perfci
closes its own process alone, by ``PR_SET_DUMPABLE``.

A PID namespace was rejected: workers could then not be waited for, pinned and found by their ids.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

Obstacle = Literal["", "switched_off", "no_tools", "no_gpu_driver", "refused"]
"""Why there is no namespace; ``no_gpu_driver``: CUDA would load it by a program that needs root."""

SWITCH = "PERFCI_ISOLATION"
"""``off`` keeps workers out of a namespace. No configuration key: head's author writes that."""

_PR_SET_DUMPABLE = 4
_ANSWER_S = 10.0
_PROBE = "(: < /proc/$1/environ) 2>/dev/null && echo open || echo closed"


@contextlib.contextmanager
def isolated(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Close this process, and yield what to put before the commands of foreign code.

    That is nothing where the kernel has no namespace for them.
    """
    with _namespace(environment) as enter:
        close_own_process()
        yield enter


def obstacle(environment: Mapping[str, str]) -> Obstacle:
    """Return what keeps this user's other processes open to benchmarks here, or nothing."""
    known = _known_obstacle(environment)
    if known:
        return known
    with _namespace(environment) as enter:
        return "" if enter else "refused"


def close_own_process() -> None:
    """Let no process of this user read this one; root, with its rights over all, still can."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@contextlib.contextmanager
def _namespace(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the command that enters a user namespace, which lives until this is left."""
    unshare, nsenter = shutil.which("unshare"), shutil.which("nsenter")
    if _known_obstacle(environment) or not (unshare and nsenter):
        yield ()
        return
    plain = {"PATH": os.environ.get("PATH", os.defpath)}
    with subprocess.Popen(
        [unshare, "--user", "--", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=plain,
        start_new_session=True,  # a Ctrl-C of the terminal's ends the session, not this
        bufsize=0,
    ) as holder:
        assert holder.stdin is not None  # noqa: S101 (asked for above)
        assert holder.stdout is not None  # noqa: S101
        try:
            enter = (nsenter, f"--user=/proc/{holder.pid}/ns/user", "--preserve-credentials", "--")
            yield enter if _is_ready(holder) and _holds(enter, plain) else ()
        finally:
            holder.kill()


def _is_ready(holder: subprocess.Popen[bytes]) -> bool:
    """Map every user and group to itself; return whether the kernel lets us."""
    assert holder.stdin is not None  # noqa: S101
    assert holder.stdout is not None  # noqa: S101
    try:
        holder.stdin.write(b"\n")
        if holder.stdout.read(1) != b"\n":  # refused: unshare has ended
            return False
        process = Path(f"/proc/{holder.pid}")
        if os.geteuid() == 0:
            maps = [_identity("uid_map"), _identity("gid_map")]
        else:
            (process / "setgroups").write_text("deny", encoding="ascii")
            maps = [f"{one} {one} 1" for one in (os.geteuid(), os.getegid())]
        for name, text in zip(("uid_map", "gid_map"), maps, strict=True):
            (process / name).write_text(text, encoding="ascii")
    except OSError:  # a kernel or a container that has none for us: the caller says so
        return False
    return True


def _identity(name: str) -> str:
    """Root keeps its rights over other users' files: map all that is mapped here."""
    own = Path(f"/proc/self/{name}").read_text(encoding="ascii").splitlines()
    ranges = (line.split() for line in own)
    return "\n".join(f"{first} {first} {count}" for first, _, count in ranges)


def _holds(enter: tuple[str, ...], plain: Mapping[str, str]) -> bool:
    """Try it: from inside, this process can't be read (nor later, when it has closed itself)."""
    try:
        tried = subprocess.run(
            [*enter, "sh", "-c", _PROBE, "sh", str(os.getpid())],
            env=plain, capture_output=True, text=True, check=False, timeout=_ANSWER_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.stdout.strip() == "closed"


def _known_obstacle(environment: Mapping[str, str]) -> Obstacle:
    if environment.get(SWITCH) == "off":
        return "switched_off"
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return "no_tools"
    if Path("/dev/nvidiactl").exists() and not Path("/dev/nvidia-uvm").exists():
        return "no_gpu_driver"
    return ""
