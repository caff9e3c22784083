"""Waiting for something that may never end: a real limit, which a time-out between bytes is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

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
