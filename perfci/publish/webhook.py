"""Sends one message to a webhook, whose address is a secret: nothing here ever shows it.

A message is repeated only where it surely didn't arrive: the connection failed, or the answer was
429 or 5xx. Where the answer is lost nobody knows, and a message twice would be worse than none.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import SplitResult

from perfci.errors import OutsideError, UsageError
from perfci.model.version import VERSION
from perfci.publish.http import address_of, asked_wait, within
from perfci.render.clean import clean_line
from perfci.units import format_duration


class MaybeDelivered(OutsideError):
    """The message was sent and the answer was lost; it is not sent again."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in s: ``timeout`` of each try as a whole, ``most`` of all waits between them."""

    timeout: float = 15.0
    tries: int = 4
    first_wait: float = 1.0
    most: float = 120.0


USUAL = Pace()


def require_webhook(url: str) -> SplitResult:
    """Return the parts of a webhook's address; UsageError, which doesn't show it, on none."""
    parts = address_of(url)
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts is None or not plain or "@" in parts.netloc:
        raise UsageError(
            "bad-webhook",
            "the webhook's address is no address (it is a secret, and not shown)",
            "Give it as in https://hooks.slack.com/services/…, best by PERFCI_WEBHOOK.",
        )
    return parts


def send(
    url: str,
    body: bytes,
    pace: Pace = USUAL,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> None:
    """Send ``body``, which is JSON. OutsideError where it did not arrive."""
    parts = require_webhook(url)
    host = clean_line(parts.hostname or "", 100)
    waited = 0.0
    for number in range(1, pace.tries + 1):
        failure, asked = _try(url, body, pace.timeout, host, now())
        if failure is None:
            return
        wait = asked if asked is not None else pace.first_wait * 2.0 ** (number - 1)
        if waited + wait > pace.most:
            raise OutsideError(
                "webhook-failed",
                f"{failure}, and wants a wait of {format_duration(wait)}",
                "Nothing was sent. Run it again later: what is new stays new.",
            )
        if number < pace.tries:
            waited += wait
            sleep(wait)
    raise OutsideError(
        "webhook-failed",
        f"{failure}, {pace.tries} times over",
        "Nothing was sent. Run it again later: what is new stays new.",
    )


def _try(
    url: str, body: bytes, timeout: float, host: str, now: float
) -> tuple[str | None, float | None]:
    """Return why it failed for now and the wait that was asked for; None where it arrived.

    urllib's own time-out is for each byte: a server that drips them would be waited for for ever.
    """
    message = _Message(body)
    try:
        return within(lambda: _post(url, message, timeout, host, now), timeout)
    except TimeoutError:
        if not message.give_up():
            return f"the webhook at {host} can't be reached in {format_duration(timeout)}", None
        raise _unsure(host, "too slow") from None


class _Message:
    """A body that is taken once, and not any more after it was given up: nothing ends a thread."""

    def __init__(self, body: bytes) -> None:
        self.size = len(body)
        self._body = body
        self._lock = threading.Lock()
        self._begun = self._given_up = False

    def __iter__(self) -> Iterator[bytes]:
        with self._lock:
            if self._given_up:
                raise ConnectionAbortedError
            self._begun = True
        yield self._body

    def give_up(self) -> bool:
        """Keep it from being sent; return whether that is too late."""
        with self._lock:
            self._given_up = True
            return self._begun


def _post(
    url: str, message: _Message, timeout: float, host: str, now: float
) -> tuple[str | None, float | None]:
    request = urllib.request.Request(  # noqa: S310 (`require_webhook` takes http and https only)
        url,
        data=message,
        method="POST",
        headers={
            "Content-Type": "application/json",
            "Content-Length": str(message.size),
            "User-Agent": f"perfci/{VERSION}",
        },
    )
    try:
        with _opener().open(request, timeout=timeout):
            return None, None
    except urllib.error.HTTPError as answer:
        with answer:
            return _judge(answer, host, now)
    except urllib.error.URLError as error:  # before the whole message was out
        return f"the webhook at {host} can't be reached: {_reason(error.reason)}", None
    except (OSError, http.client.HTTPException) as error:
        raise _unsure(host, type(error).__name__) from None  # the error may hold the address


def _unsure(host: str, why: str) -> MaybeDelivered:
    return MaybeDelivered(
        "webhook-unsure",
        f"the webhook at {host} took the message and gave no answer: {why}",
        "Look whether it arrived. It is not sent again.",
    )


def _judge(
    answer: urllib.error.HTTPError, host: str, now: float
) -> tuple[str | None, float | None]:
    what = f"the webhook at {host} answered {answer.code}"
    if answer.code == 429 or answer.code >= 500:
        return what, asked_wait(answer.headers.get("Retry-After", ""), now)
    if 300 <= answer.code < 400:
        raise OutsideError(
            "webhook-moved",
            f"{what}: it wants the message sent elsewhere",
            "Redirects are not followed: the address is a secret. Give the new one.",
        )
    raise OutsideError(
        "webhook-refused",
        f"{what}: it didn't take the message",
        "Is the webhook still there, and its channel? Make a new one, and set PERFCI_WEBHOOK.",
    )


def _reason(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return clean_line(reason.strerror, 100)
    return type(reason).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address would be told what this one was meant to keep."""

    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002 (urllib's signature)
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: Any,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> urllib.request.Request | None:
        """Return None: the answer is an error like any other."""
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirect)
