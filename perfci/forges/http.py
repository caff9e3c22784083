"""One small HTTP client: a request is sent once and has an end, and may be tried again.

The time-out of `requests` is for each byte, so that a byte a second would last for ever. Nothing is
repeated here (see ``retry``), no redirect followed, no password taken from a .netrc.

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
"""Digits alone: what ``isdigit`` takes, such as ``²``, is more than a number has."""
_NAME = re.compile(rb"[A-Za-z0-9_.-]+")
_PORTS = {"http": 80, "https": 443}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A server's answer. Names in ``headers`` are in lower case.

    ``text`` is not all of it where it was longer than was to be read.
    """

    status: int
    headers: Mapping[str, str]
    text: str
    whole: bool = True


class NoResponse(Exception):
    """There was none. ``why`` doesn't hold the address, which may be a secret.

    ``sent``: whether the request may have arrived. ``spent``: the s after which it was given up.
    """

    def __init__(self, why: str, *, sent: bool, spent: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.spent = spent


@dataclass(frozen=True, slots=True)
class Pace:
    """The least time in s from one request's end to the next, and from one write's to the next."""

    requests: float = 0.0
    writes: float = 0.0


_NO_PACE = Pace()


class Connection:
    """Sends requests. ``timeout`` s for each as a whole, ``most_bytes`` of each answer are read."""

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
        """Close what is kept open between requests."""
        self._session.close()

    def send(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpResponse:
        """Return the answer, be it a failure or a redirect. NoResponse where there is none."""
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
            self._session = _Session()  # the old one is still in use by who isn't waited for
            sent = message is None or message.give_up()
            raise NoResponse("too slow", sent=sent, spent=self._timeout) from None
        except (requests.RequestException, ValueError) as error:  # it may hold the address
            raise NoResponse(_reason(error), sent=message is None or message.sent) from None


class _Message:
    """A body that is taken once, and not any more after it was given up: nothing ends a thread."""

    def __init__(self, body: bytes) -> None:
        self.sent = False
        self._body = body
        self._lock = threading.Lock()
        self._begun = self._given_up = False

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        with self._lock:
            if self._given_up:
                raise ConnectionAbortedError
            self._begun = True
        yield self._body
        self.sent = True

    def give_up(self) -> bool:
        """Keep it from being sent. Return whether that is too late."""
        with self._lock:
            self._given_up = True
            return self._begun


class _Session(requests.Session):
    def __init__(self) -> None:
        super().__init__()
        self.auth = lambda request: request  # else a .netrc's password takes the token's place
        self.headers["User-Agent"] = f"perfci/{VERSION}"

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None: else a redirect is read whole and parsed, even if not followed."""


def _read(answer: requests.Response, most: int) -> tuple[str, bool]:
    """Return the text, and whether that is all of it. Nothing is waited for where most is 0."""
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
    """Return the system's words where it has any, else the kind of what began it."""
    while True:
        if isinstance(error, OSError) and isinstance(error.strerror, str):
            return clean_line(error.strerror, 100)
        inner = error.__cause__ or error.__context__
        if inner is None:
            return type(error).__name__
        error = inner


def address_of(url: str) -> SplitResult | None:
    """Return the parts of an http or https address with a host, or None of anything else."""
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
    """Return where ``location`` leads from ``url``, or None unless that is the same server."""
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
    """Return the wait in s that a ``Retry-After`` asks for, or None where it can't be read.

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
    """Return a header's whole number of s, or None where no server could mean it."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else None


def within(do: Callable[[], T], most: float) -> T:
    """Return what ``do`` returns or raises. TimeoutError after ``most`` s, and it is left alone.

    A thread, because nothing else ends a wait for a name, a handshake and headers alike. Python
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


class Retryable(OutsideError):
    """It may be tried again.

    ``wait`` is what the server asks for in s, None where it names nothing. ``spent`` how long an
    answer was already waited for in vain.
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
    """Times in s. ``most`` bounds all waits for one thing together, ``tries`` their number.

    ``timeout`` is for one try as a whole, and a try that had no answer counts as such a wait.
    ``option`` is what a user sets ``most`` by.
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
    """Return what ``do`` returns. It is done again, after ``before_again``, where it may be.

    Raise OutsideError where that would take too many tries, or too long a wait.
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
