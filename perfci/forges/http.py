"""A small HTTP client: a request is sent once, and ends in time. ``retry`` sends it again.

The time-out of `requests` is for each byte, so that a byte a second would last for ever. This
client repeats nothing by itself, follows no redirect, and takes no password from a .netrc.

Waits are bounded: a job that sleeps for an hour costs more than its comment.
"""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import requests

from perfci.errors import OutsideError
from perfci.report.clean import clean_line
from perfci.units import format_duration
from perfci.version import VERSION

_LONGEST_SILENCE_S = 15.0
"""The longest wait for the next byte, in s."""
_SECONDS = re.compile(r"[0-9]{1,12}")
"""Digits alone. ``isdigit`` takes more, such as ``²``."""
_NAME = re.compile(rb"[A-Za-z0-9_.-]+")
"""A host's name, in IDNA."""
_PORTS = {"http": 80, "https": 443}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A server's answer. Names in ``headers`` are in lower case.

    ``whole`` is False if the answer was longer than what is read of it. ``text`` is its beginning
    then.
    """

    status: int
    headers: Mapping[str, str]
    text: str
    whole: bool = True


class NoResponse(Exception):
    """A request without a response. ``why`` doesn't hold the address, which may be a secret.

    ``spent`` are the s after which it was given up. The request may have arrived.
    """

    def __init__(self, why: str, spent: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.spent = spent


@dataclass(frozen=True, slots=True)
class Pace:
    """The least time in s from one request's end to the next, and from one write's to the next."""

    requests: float = 0.0
    writes: float = 0.0


_NO_PACE = Pace()


class Connection:
    """Sends requests. Each may take ``timeout`` s. Of each answer, ``most_bytes`` are read."""

    def __init__(
        self,
        timeout: float,
        most_bytes: int,
        pace: Pace = _NO_PACE,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = timeout
        self._most_bytes = most_bytes
        self._pace = pace
        self._sleep = sleep
        self._clock = clock
        self._next = self._next_write = clock()
        self._session = _Session()

    def close(self) -> None:
        """Close the connections that are kept open between requests."""
        self._session.close()

    def send(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpResponse:
        """Return the answer, even if it is a failure or a redirect. NoResponse without one."""
        writes = verb != "GET"
        wait = max(self._next, self._next_write if writes else 0.0) - self._clock()
        if wait > 0.0:
            self._sleep(wait)
        try:
            return self._exchange(verb, url, headers, body)
        finally:
            self._next = self._clock() + self._pace.requests
            if writes:
                self._next_write = self._clock() + self._pace.writes

    def _exchange(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        session = self._session
        message = _Message(body) if body else None

        def ask() -> HttpResponse:
            with session.request(
                verb,
                url,
                headers=dict(headers),
                data=message,
                timeout=min(_LONGEST_SILENCE_S, self._timeout),
                allow_redirects=False,
                stream=True,
            ) as answer:
                named = {name.lower(): value for name, value in answer.headers.items()}
                return HttpResponse(answer.status_code, named, *_read(answer, self._most_bytes))

        try:
            return within(ask, self._timeout)
        except TimeoutError:
            self._session = _Session()  # the abandoned thread still uses the old one
            if message:
                message.give_up()
            raise NoResponse("too slow", self._timeout) from None
        except (requests.RequestException, ValueError) as error:  # it may hold the address
            raise NoResponse(_reason(error)) from None


class _Message:
    """A request's body that is sent at most once, and not after ``give_up``.

    Nothing can end the thread that sends it. So the body itself refuses to be sent.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._given_up = False

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        if self._given_up:
            raise ConnectionAbortedError
        yield self._body

    def give_up(self) -> None:
        """Keep the body from being sent, unless that has begun."""
        self._given_up = True


class _Session(requests.Session):
    def __init__(self) -> None:
        super().__init__()
        self.auth = lambda request: request  # else a .netrc's password takes the token's place
        self.headers["User-Agent"] = f"perfci/{VERSION}"

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None. Otherwise a redirect is read whole and parsed, even if not followed."""


def _read(answer: requests.Response, most: int) -> tuple[str, bool]:
    """Return the text, and whether it is whole. With 0 as ``most``, nothing is waited for."""
    content = bytearray()
    if most:
        for piece in answer.iter_content(1 << 16):
            content += piece
            if len(content) > most:
                break
        else:
            return content.decode("utf-8", "replace"), True
    return content[:most].decode("utf-8", "replace"), False


def _reason(error: BaseException) -> str:
    """Return the system's message if there is one, else the name of the innermost exception."""
    while True:
        if isinstance(error, OSError) and isinstance(error.strerror, str):
            return clean_line(error.strerror, 100)
        inner = error.__cause__ or error.__context__
        if inner is None:
            return type(error).__name__
        error = inner


def address_of(url: str) -> SplitResult | None:
    """Return the parts of an http or https address with a host, or None for anything else."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in _PORTS and parts.port != 0 and _is_host(parts.hostname or "")
    except ValueError:  # a port that is no number, brackets that don't close, an empty label
        return None
    return parts if known else None


def _is_host(name: str) -> bool:
    if ":" in name:
        return bool(ipaddress.ip_address(name))
    return _NAME.fullmatch(name.encode("idna")) is not None


def redirected(url: str, location: str) -> str | None:
    """Return the address that ``location`` leads to from ``url``, or None for another server."""
    try:
        address = urljoin(url, location)
        same = _origin(address) == _origin(url)
    except ValueError:
        return None
    return address if same else None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def requested_wait(after: str, now: float) -> float | None:
    """Return the wait in s that a ``Retry-After`` asks for, or None if it can't be read.

    The header may be a date, which is compared with ``now``, in s since 1970.
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
    """Return a header's whole number of s, or None if it isn't a plausible number."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else None


def within(do: Callable[[], T], most: float) -> T:
    """Return what ``do`` returns, or raise what it raises. TimeoutError after ``most`` s.

    ``do`` runs in a thread, because no time-out covers the wait for a name, a handshake and headers
    alike. After ``most`` s the thread is left alone. Python can't end it, but doesn't wait for it
    at its own end either.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(do())
        except Exception as error:  # noqa: BLE001 (raised below, where it is waited for)
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer.result(timeout=most)


class Retryable(OutsideError):
    """An error after which a request may be tried again.

    ``wait`` is the wait in s that the server asks for, None if it names no time. ``spent`` is how
    long an answer was already waited for in vain, in s.
    """

    def __init__(
        self,
        slug: str,
        message: str,
        advice: str = "",
        wait: float | None = None,
        spent: float = 0.0,
    ) -> None:
        super().__init__(slug, message, advice)
        self.wait = wait
        self.spent = spent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of ``retry``. Times are in s.

    ``most`` bounds all waits together, ``tries`` the number of tries. ``first_wait`` doubles with
    each try, unless the server asks for another wait. ``timeout`` is for one try as a whole. A try
    without an answer counts as a wait. ``option`` is the option by which a user sets ``most``.
    """

    most: float = 120.0
    tries: int = 5
    first_wait: float = 1.0
    timeout: float = 15.0
    option: str = ""


def retry(
    do: Callable[[], T],
    policy: RetryPolicy,
    sleep: Callable[[float], None],
    before_again: Callable[[], object] = lambda: None,
) -> T:
    """Return what ``do`` returns. After a Retryable error, wait and try again.

    ``before_again`` is called before each further try. Raises OutsideError if that would take too
    many tries, or too long a wait.
    """
    waited, tries = 0.0, 0
    while True:
        try:
            return do()
        except Retryable as failure:
            wait = policy.first_wait * 2.0**tries if failure.wait is None else failure.wait
            tries += 1
            waited += failure.spent
            _require_patience(policy, failure, tries, waited, wait)
            waited += wait
            sleep(wait)
        before_again()


def _require_patience(
    policy: RetryPolicy, failure: Retryable, tries: int, waited: float, wait: float
) -> None:
    """Raise OutsideError if another try would exceed a limit of ``policy``."""
    message, advice = failure.message, failure.advice
    if tries >= policy.tries:
        message += f", {tries} times over"
    elif waited + wait <= policy.most:
        return
    elif not failure.spent or waited < policy.most:
        message += f"; it would take a wait of {format_duration(wait)}"
        if policy.option:
            advice = f"Run it again later, or allow more than {policy.option} {policy.most:g}s."
    raise OutsideError(failure.slug, message, advice) from failure
