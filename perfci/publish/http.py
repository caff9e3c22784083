"""What is known of any server: what an address is, and how long one asks to be left alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

_SECONDS = re.compile(r"[0-9]{1,12}")
"""Digits alone: what ``isdigit`` takes, such as ``²``, is more than a number has."""


def address_of(url: str) -> SplitResult | None:
    """Return the parts of an http or https address with a host; None where ``url`` is none."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"https", "http"} and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, brackets that don't close
        return None
    return parts if known else None


def asked_wait(after: str, now: float) -> float | None:
    """Return the wait in s that a ``Retry-After`` asks for; None where nothing can be read of it.

    It may be a date, which is compared with ``now``, in s since 1970.
    """
    seconds = whole_seconds(after)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(after)
        moment = date.replace(tzinfo=date.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - now)


def whole_seconds(text: str) -> float | None:
    """Return a header's whole number of s; None where it is none that a server could mean."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else None


# Waiting for something that may never end: a real limit, which a time-out between bytes is not.

T = TypeVar("T")


def within(do: Callable[[], T], most: float) -> T:
    """Return what ``do`` returns or raises; TimeoutError after ``most`` s, and it is left alone.

    A thread, because nothing else ends a wait for a name, a handshake and headers alike; Python
    can't end it, but doesn't wait for it at its own end either.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(do())
        except Exception as error:  # noqa: BLE001 (raised below, where it is waited for)
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer.result(timeout=most)
