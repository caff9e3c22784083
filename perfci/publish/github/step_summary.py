"""The page of a job in Actions: where a report is read that may not be a comment."""

from __future__ import annotations

import os
from pathlib import Path

from perfci.files import require_file

_MOST = 1 << 20
"""What GitHub takes of a step's summary, in bytes; it drops all of a larger one."""


def append_summary(path: Path, text: str) -> bool:
    """Append ``text`` to the step's summary; False, and nothing written, where it is full.

    Raises OSError where the file can't be written.
    """
    require_file(path)
    content = ("\n" + text.rstrip("\n") + "\n").encode("utf-8", "replace")
    with path.open("ab") as file:
        if os.fstat(file.fileno()).st_size + len(content) > _MOST:
            return False
        file.write(content)
    return True
