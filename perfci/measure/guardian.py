"""A tiny process that outlives the parent: when the parent dies, however, it ends the workers.

The parent's death closes the pipe that this process reads. ``PR_SET_PDEATHSIG`` was rejected:
it reaches the worker only, not what the worker started.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

_KEPT = ("PATH", "LD_LIBRARY_PATH")
"""No secret among them: it lives beside the workers, and they are of the same user."""


class Guardian:
    """Guards one session while it is open."""

    def __init__(self, token: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None  # noqa: S101 (asked for above)
        self._process.stdin.close()
        self._process.wait()


def _watch(token: str) -> None:
    sys.stdin.buffer.read()
    leftovers = runpy.run_path(str(Path(__file__).with_name("leftovers.py")))
    leftovers["end_all"](leftovers["SESSION_VARIABLE"], token)


if __name__ == "__main__":
    _watch(sys.argv[1])
