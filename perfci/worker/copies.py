"""Whether the work forked and let both copies of the process return from it."""

from __future__ import annotations

import mmap
import os
import time

from perfci.clock import monotonic_ns
from perfci.errors import Unusable

_LAST_WAIT_NS = 250_000_000
"""A copy that the system has not let run yet is a moment late; a pool's children never return."""


class Copies:
    """What a worker shares with whatever it forks: a copy that returns leaves its mark there.

    The two would measure side by side, on one core. ``multiprocessing`` ends its children itself.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._returned = mmap.mmap(-1, 1)

    def end(self) -> None:
        """End this process where it is a copy."""
        if os.getpid() != self._pid:
            self._returned[0] = 1
            os._exit(0)

    def require_none(self) -> None:
        """Raise Unusable where a copy has returned until now; end this process where it is one."""
        self.end()
        if self._returned[0]:
            raise Unusable(
                "forked_copy",
                "it forked, and both copies of the process went on after it: end the child inside, "
                "with os._exit",
            )

    def require_none_at_last(self) -> None:
        """Do so once nothing is called more: a child that still runs may be about to return."""
        until = monotonic_ns() + _LAST_WAIT_NS
        while not self._returned[0] and _child_runs() and monotonic_ns() < until:
            time.sleep(0.005)
        self.require_none()


def _child_runs() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False
