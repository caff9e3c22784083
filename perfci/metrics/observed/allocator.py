"""glibc's allocator and Python's collector: what they have done, and when they free memory.

The worker keeps freed pages (``machine.isolation``) and gives them back before its memory is read.
It can't make other processes do the same. A pool's child that once held 210 MiB would look as large
in every later call. So processes below the worker give back freed pages at once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Mapping

_TRIM, _PAD, _MAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_"
"""Variables by which a process gets glibc's settings at its start."""
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
"""Numbers of the same settings for ``mallopt``."""
_GIVEN_BACK = 4 << 20
"""Freed memory from this size on is given back: the threshold of host_memory_over_setup."""
_DEFAULT_PAD = 128 << 10
_SMALL_OBJECT = 64.0
"""Typical size of pymalloc's blocks, in bytes. Python tells their number, not their sizes."""
_kept: dict[str, int] = {}
"""The worker's own settings by variable, if it keeps its pages."""


def have_children_give_back() -> None:
    """Have processes that this one starts or forks give back blocks of 4 MiB and more.

    Does nothing unless this process was started with the settings that keep pages. Its own settings
    stay in force.
    """
    if _kept or not all(os.environ.get(name, "").isdigit() for name in (_TRIM, _PAD, _MAP)):
        return
    _kept.update({name: int(os.environ[name]) for name in (_TRIM, _PAD, _MAP)})
    os.environ[_TRIM] = os.environ[_MAP] = str(_GIVEN_BACK)
    del os.environ[_PAD]
    os.register_at_fork(after_in_child=lambda: _set(_GIVEN_BACK, _DEFAULT_PAD, _GIVEN_BACK))


def settings_to_keep_pages() -> dict[str, int]:
    """Return this worker's own settings. Empty if it has glibc's defaults."""
    return dict(_kept)


def keep_pages(settings: Mapping[str, int]) -> None:
    """Give this process its worker's settings. Called in a rank, whose steps are timed."""
    if settings:
        _set(settings[_TRIM], settings[_PAD], settings[_MAP])


def _set(trim: int, pad: int, least_mapped: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    for option, value in (
        (_M_TRIM_THRESHOLD, trim),
        (_M_TOP_PAD, pad),
        (_M_MMAP_THRESHOLD, least_mapped),
    ):
        if mallopt is not None:
            mallopt(option, value)


def give_back() -> None:
    """Give the allocator's free pages back to the kernel. musl has no call for it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def collections_so_far() -> int:
    """Return how many collections of garbage this process has made, of any generation."""
    return sum(generation["collections"] for generation in gc.get_stats())


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def host_allocated() -> Callable[[], float] | None:
    """Return a function that returns the bytes that glibc and Python have handed out.

    Return None if the C library isn't a glibc that counts them.
    """
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo2.restype = _Mallinfo2

    def allocated() -> float:
        info = mallinfo2()
        # Python maps the arenas of its small objects itself, so glibc doesn't count them
        return float(info.uordblks + info.hblkhd) + _SMALL_OBJECT * sys.getallocatedblocks()

    return allocated
