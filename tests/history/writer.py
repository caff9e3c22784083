"""Records a range of runs as one process of many: ``python -m tests.history.writer PLACE A B K``.

With K above 0 it kills itself with SIGKILL in the middle of writing its K-th run: the run and its
points are written, and not committed.
"""

from __future__ import annotations

import os
import signal
import sys

from sqlalchemy import Engine, event

from perfci.history.store import open_history
from tests.builders.recorded import recorded

_LAST_STATEMENT = "INSERT INTO perfci_runs"


def main(place: str, first: int, end: int, killed_in: int) -> None:
    written = 0

    def kill(_connection, _cursor, statement: str, *_rest: object) -> None:
        nonlocal written
        if statement.startswith(_LAST_STATEMENT):
            written += 1
            if written == killed_in:
                os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "after_cursor_execute", kill)
    with open_history(place) as history:
        for number in range(first, end):
            history.record([recorded(number, cases=3)])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
