"""Saying what failed and where in the user's code, whatever the user's code raised."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import PerfciError, Unusable
from perfci.plugins import BROKEN

if TYPE_CHECKING:
    from traceback import FrameSummary

_OURS = str(Path(__file__).resolve().parent.parent) + os.sep
_LONGEST = 4000


def kind_of(error: BaseException) -> str:
    """Return a failure's kind: perfci's own word, or the exception's class."""
    if isinstance(error, PerfciError) and error.slug == BROKEN:
        return "broken_plugin"
    return error.kind if isinstance(error, Unusable) else type(error).__name__


def where_it_failed(error: BaseException, roots: Sequence[str]) -> str:
    """Return the error's text after ``file:line`` of the user's code nearest to it.

    ``roots`` are the trees of the user's code, which paths are shown relative to; a frame in one
    of them is preferred to a library's. perfci's own errors say their place themselves.
    """
    text = _text(error)
    if isinstance(error, (PerfciError, Unusable)):
        for root in roots:
            text = text.replace(root + os.sep, "")
    elif isinstance(error, SyntaxError):
        text = f"{_relative(error.filename or '?', roots)}:{error.lineno}: {error.msg}"
    elif place := _place(error, roots):
        text = f"{place}: {text}"
    # Half of a surrogate pair (a file's name, say) could be written nowhere later on.
    return text[:_LONGEST].encode("utf-8", "backslashreplace").decode("utf-8")


def log(error: BaseException) -> None:
    """Put the way through the user's code into the log, after what the benchmark printed."""
    with contextlib.suppress(Exception):  # the benchmark broke its own stderr: there is no log
        sys.stderr.write(way_to(error))
    flush()


def way_to(error: BaseException) -> str:
    """Return the frames of a user's code that led to ``error``; empty where there are none."""
    import traceback

    frames = _users_frames(error)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return "".join(lines) if frames else ""


def flush() -> None:
    """Flush the standard streams: ``os._exit`` would lose what they hold."""
    for name in ("stdout", "stderr"):
        with contextlib.suppress(Exception):  # likewise
            getattr(sys, name).flush()


def _text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception as second:  # noqa: BLE001 (a user's own __str__)
        return f"{type(error).__name__}, whose text can't be had ({type(second).__name__})"


def _place(error: BaseException, roots: Sequence[str]) -> str:
    places = [(frame.filename, frame.lineno) for frame in _users_frames(error)]
    inside = tuple(root + os.sep for root in roots)
    own = [
        place
        for place in places
        if place[0].startswith(inside) and "/site-packages/" not in place[0]
    ]
    if not places:
        return ""
    file, line = (own or places)[-1]
    return f"{_relative(file, roots)}:{line}"


def _users_frames(error: BaseException) -> list[FrameSummary]:
    import traceback

    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, "<frozen"))
    ]


def _relative(file: str, roots: Sequence[str]) -> str:
    for root in roots:
        if file.startswith(root + os.sep):
            return file.removeprefix(root + os.sep)
    return file
