"""A message to a real server that fails, limits, redirects or falls silent: once, in secret."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.forges import http
from perfci.forges.http import RetryPolicy, within
from perfci.forges.webhook import MaybeDelivered, require_webhook, send
from tests.forges.receiver import DRIPPING, DROPPED, SILENT, Answer, Receiver

NOW = 1_700_000_000.0
BODY = b'{"text": "hello"}'


def sent(receiver: Receiver, tries: int = 4, timeout: float = 5.0) -> list[float]:
    """Send, and return the waits."""
    slept: list[float] = []
    policy = RetryPolicy(tries=tries, timeout=timeout)
    send(receiver.url, BODY, policy, slept.append, lambda: NOW)
    return slept


def test_a_message_arrives_once_as_json(receiver: Receiver) -> None:
    assert sent(receiver) == []
    assert receiver.bodies == [BODY]
    assert receiver.paths == ["/services/T0/B0/SeCrEt"]
    assert receiver.types == ["application/json"]


def test_a_failing_server_is_tried_again_with_growing_waits(receiver: Receiver) -> None:
    receiver.answers = [Answer(500), Answer(503), Answer(502)]
    assert sent(receiver) == [1.0, 2.0, 4.0]
    assert receiver.bodies == [BODY] * 4


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        ("7", 7.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Mon, 13 Nov 2023 22:13:50 GMT", 0.0),
        ("soon", 1.0),
        ("²", 1.0),  # a digit to `isdigit`, and no number
        ("9" * 400, 1.0),
        ("Fri, 01 Jan 99999 00:00:00 GMT", 1.0),
    ],
)
def test_a_limit_is_waited_for_as_long_as_it_asks(
    receiver: Receiver, after: str, wait: float
) -> None:
    receiver.answers = [Answer(429, {"Retry-After": after})]
    assert sent(receiver) == [wait]
    assert receiver.bodies == [BODY] * 2


def test_a_wait_that_is_too_long_is_not_slept(receiver: Receiver) -> None:
    receiver.answers = [Answer(429, {"Retry-After": "3600"})]
    with pytest.raises(OutsideError, match="it would take a wait of 1 h 0 min"):
        sent(receiver)
    assert len(receiver.bodies) == 1


def test_the_end_of_patience_is_an_error(receiver: Receiver) -> None:
    receiver.answers = [Answer(500)] * 9
    with pytest.raises(OutsideError, match="answered 500, 4 times over"):
        sent(receiver)
    assert len(receiver.bodies) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.answers = [Answer(status, {"Location": "/elsewhere"})]
    with pytest.raises(OutsideError, match="sent elsewhere"):
        sent(receiver)
    assert receiver.paths == ["/services/T0/B0/SeCrEt"]


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_a_refusal_is_told_and_not_repeated(receiver: Receiver, status: int) -> None:
    receiver.answers = [Answer(status)]
    with pytest.raises(OutsideError, match=f"answered {status}: it didn't take the message"):
        sent(receiver)
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize("status", [DROPPED, SILENT, DRIPPING])
def test_where_the_answer_is_lost_the_message_is_not_sent_twice(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    def within_from_its_arrival(do: Callable[[], Any], most: float) -> Any:
        trying: Future[Any] = Future()
        threading.Thread(target=settle, args=(trying, do), daemon=True).start()
        assert receiver.received.wait(20)
        return within(trying.result, most)

    monkeypatch.setattr(http, "within", within_from_its_arrival)
    receiver.answers = [Answer(status)]
    with pytest.raises(MaybeDelivered, match="took the message and gave no answer"):
        sent(receiver, timeout=0.3)
    assert receiver.bodies == [BODY]
    assert not receiver.outwaited


def settle(future: Future[Any], do: Callable[[], Any]) -> None:
    """Do what ``future`` stands for."""
    try:
        future.set_result(do())
    except Exception as error:  # raised where the result is asked for
        future.set_exception(error)


def test_what_was_given_up_before_it_was_sent_is_never_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = threading.Event()
    looked_up = socket.getaddrinfo

    def slow(*arguments: Any, **options: Any) -> Any:
        answering.wait(20)
        return looked_up(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)  # no time-out of a socket ends a look-up
    before = set(threading.enumerate())
    with pytest.raises(OutsideError, match=r"can't be reached in .*, 2 times over"):
        sent(receiver, tries=2, timeout=0.3)
    left = set(threading.enumerate()) - before
    assert len(left) == 2
    answering.set()
    for thread in left:
        thread.join(20)
    assert not any(receiver.bodies)


@pytest.mark.parametrize(
    "failure",
    [UnicodeError("label empty or too long"), ValueError("SeCrEt"), OSError(113, "No route")],
    ids=["unicode", "value", "system"],
)
def test_of_what_was_never_sent_nobody_says_that_it_was_taken(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def look_up(*_: Any, **__: Any) -> Any:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(OutsideError, match=r"can't be reached: .*, 2 times over") as caught:
        sent(receiver, tries=2)
    assert not isinstance(caught.value, MaybeDelivered)
    assert "SeCrEt" not in str(caught.value)
    assert receiver.bodies == []


@pytest.mark.parametrize(("status", "error"), [(200, None), (302, OutsideError)])
def test_an_answer_is_one_before_its_body_is_there(
    receiver: Receiver, status: int, error: type[Exception] | None
) -> None:
    receiver.answers = [Answer(status, {"Location": "/x", "Content-Length": "1000"})]
    with pytest.raises(error, match="sent elsewhere") if error else contextlib.nullcontext():
        sent(receiver)
    assert receiver.bodies == [BODY]


def test_a_server_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as taken:  # bound and not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/SeCrEt"
        slept: list[float] = []
        with pytest.raises(OutsideError, match="can't be reached: Connection refused") as caught:
            send(url, BODY, RetryPolicy(tries=4), slept.append, lambda: NOW)
    assert slept == [1.0, 2.0, 4.0]
    assert "SeCrEt" not in str(caught.value)


@pytest.mark.parametrize("answer", [Answer(500), Answer(404), Answer(302), Answer(DROPPED)])
def test_no_error_shows_the_secret_address(receiver: Receiver, answer: Answer) -> None:
    receiver.answers = [answer] * 9
    with pytest.raises(OutsideError) as caught:
        sent(receiver)
    shown = [caught.value]
    while shown[-1].__cause__ is not None:
        shown.append(shown[-1].__cause__)
    assert "127.0.0.1" in str(shown[0])
    assert not any("SeCrEt" in f"{one!s} {one!r}" for one in shown)


@pytest.mark.parametrize(
    "url",
    [
        "SeCrEt",
        "",
        "ftp://hooks.example/SeCrEt",
        "file:///etc/SeCrEt",
        "https:///SeCrEt",
        "https://a:SeCrEt/x",
        "https://[SeCrEt",
        "https://user:SeCrEt@hooks.example/x",
        "https://hooks.example/SeCrEt\r\nX:y",
        "https://hooks.example/SeCrEt x",
        "https://hooks.example/SeCrEt\u202e",
        "http://SeCrEt..b/",
        "http://%00/SeCrEt",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_webhook(url)
    assert "SeCrEt" not in str(caught.value)
    assert caught.value.__cause__ is None
