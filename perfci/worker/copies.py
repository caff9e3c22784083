"""Whether the work forked and let both copies of the process return from it."""

from __future__ import annotations

import mmap
import os

from perfci.errors import Unusable


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
