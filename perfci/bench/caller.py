"""Where the user's own code stands, for messages that begin with ``file:line``."""

from __future__ import annotations

import inspect
from pathlib import Path

_PACKAGE = str(Path(__file__).parent.parent) + "/"


def user_frame() -> str:
    """Return ``file:line`` of the innermost frame outside perfci, or nothing."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
