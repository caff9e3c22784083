"""Calls that each run a statement in a fresh Python process. The process's start isn't timed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from perfci.api import how_it_ended, tied_command
from perfci.errors import Unusable

_RUN = """\
import os, sys
from timeit import timeit
go, done, statement, setup, number = sys.argv[1:]
def turn():
    os.write(int(done), b".")
    os.read(int(go), 1)
    return 0.0
timeit(stmt=statement, setup=setup, number=int(number), timer=turn)
"""
"""The process's program. ``timeit`` reads its timer once the set-up is done, and again after the
statement. This timer reports each reading, and waits until it may go on.
"""


class FreshPython:
    """Runs a statement ``number`` times per call. Each call has a fresh process, already set up."""

    def __init__(self, statement: str, setup: str, number: int, extra: Mapping[str, str]) -> None:
        self._arguments = (statement, setup, str(number))
        self._environment = {**os.environ, **extra}
        self._process: subprocess.Popen[bytes] | None = None
        self._go = self._done = -1

    def prepare(self) -> None:
        """Start the process, and wait until its set-up is done."""
        self.close()
        go, self._go = os.pipe()
        self._done, done = os.pipe()
        self._process = subprocess.Popen(
            tied_command([sys.executable, "-c", _RUN, str(go), str(done), *self._arguments]),
            stdin=subprocess.DEVNULL,
            env=self._environment,
            pass_fds=(go, done),
        )
        os.close(go)
        os.close(done)
        self._await("the set-up of the statement")

    def call(self) -> None:
        """Have the process run the statement, and wait until it has."""
        os.write(self._go, b".")
        self._await("the statement")

    def _await(self, what: str) -> None:
        if not os.read(self._done, 1) and self._process:
            ended = how_it_ended(self._process.wait())
            raise Unusable("process_ended", f"{what} {ended}; the worker's log says why")

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.wait()
            os.close(self._go)
            os.close(self._done)
            self._process = None
