"""Dividing perfci's own cgroup, so that the kernel counts the memory of each worker's processes.

Only where it was delegated to perfci alone, as by
``systemd-run --user --scope -p Delegate=yes perfci compare …``: cgroup v2. A cgroup that has
processes can't give its children a controller, so perfci moves itself into one of these, beside
its workers'. The guardian leaves all as it was found (``session.leftovers``).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from perfci.metrics.observed.cgroup import PEAK, PREFIX, PROCESSES, ROOT, cgroup_of, own_cgroup

_CONTROLLERS, _SUBTREE = "cgroup.controllers", "cgroup.subtree_control"
_DELEGATED = ("user.delegate", "trusted.delegate")
"""How systemd marks what it leaves to others: what it keeps may be writable, too."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Division:
    """Where perfci is by now, ``leaf``, and whether it ``enabled`` the controller above that."""

    leaf: str = ""
    enabled: bool = False


def divide() -> Division:
    """Let workers have cgroups of their own from now on, if they can."""
    here = own_cgroup()
    if here is None or why_undivided(here):
        return Division()
    remove_left(here)
    leaf = here / f"{PREFIX}{secrets.token_hex(8)}"
    enabled = "memory" not in _words(here / _SUBTREE)
    with contextlib.suppress(OSError):  # what the kernel refuses: a worker finds no memory.peak
        leaf.mkdir()
        for _ in range(_TRIES):  # what has forked meanwhile, too
            own = set(_processes_in(here)) & _own_processes()
            for pid in own:
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    _write(leaf / PROCESSES, str(pid))
            if not own:
                break
        if enabled:
            _write(here / _SUBTREE, "+memory")
    return Division(str(leaf), enabled)


def why_undivided(here: Path | None) -> str:
    """Return why perfci must not or can't divide the cgroup ``here``, or nothing."""
    if here is None or not (here / _CONTROLLERS).exists():
        return "there is no cgroup v2"
    return _why_unfit(here) or _why_not_delegated(here)


def _why_unfit(here: Path) -> str:
    if not (here / "cgroup.type").exists():
        return "its cgroup is the machine's own, which nobody delegated"
    if "memory" not in _words(here / _CONTROLLERS):
        return "its cgroup has no memory controller"
    if not _is_resettable(here / PEAK):
        return "this kernel can't reset memory.peak: Linux 6.12 can"
    return ""


def _why_not_delegated(here: Path) -> str:
    begins_here = here == ROOT or not os.access(here.parent, os.W_OK) or _is_marked(here)
    places = (here, here / PROCESSES, here / _SUBTREE)
    if not (begins_here and all(os.access(one, os.W_OK) for one in places)):
        return "its cgroup is not delegated to it"
    if set(_processes_in(here)) - _own_processes():
        return "its cgroup has other processes, too"
    return ""


def remove_left(here: Path) -> None:
    """Remove what sessions left in ``here`` that were killed together with their guardians."""
    for one in here.glob(f"{PREFIX}*"):
        _remove(one)


def remove_worker(token: str) -> None:
    """Remove the cgroup of a worker that has ended, with all that it started."""
    if folder := cgroup_of(token):
        _remove(folder)


def _processes_in(folder: Path) -> list[int]:
    """Return the ids of a cgroup's processes; 0 for one that this process can't see."""
    return [int(word) for word in _words(folder / PROCESSES)]


def _remove(folder: Path) -> None:
    """Remove a cgroup; of one that is gone, or that a process is in, nothing."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _own_processes() -> set[int]:
    import psutil

    this = psutil.Process()
    return {this.pid, *(one.pid for one in this.children(recursive=True))}


def _is_resettable(peak: Path) -> bool:
    """Say whether the file may be written: its mode says so, root may open any."""
    try:
        return bool(peak.stat().st_mode & stat.S_IWUSR)
    except OSError:
        return False


def _is_marked(here: Path) -> bool:
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(here, name) == b"1":
                return True
    return False


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")
