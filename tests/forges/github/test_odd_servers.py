"""Servers that never end, say odd things or aren't GitHub: a clean error, in time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from perfci.errors import OutsideError
from perfci.forges import rest
from perfci.forges.github import GitHubClient
from perfci.forges.http import Connection, RetryPolicy
from perfci.forges.rest import GUIDE
from tests.builders.project import Project
from tests.forges.github.conftest import AT_ONCE, HEAD
from tests.forges.github.server import REPOSITORY, TOKEN
from tests.forges.local_server import LocalServer

Answering = Callable[[BaseHTTPRequestHandler], None]
PULL = json.dumps(
    {"number": 7, "state": "open", "head": {"sha": HEAD, "repo": None}, "base": {"ref": "main"}}
).encode()


class OddServer:
    """Answers every request by ``answering``, and counts them."""

    def __init__(self) -> None:
        self.answering: Answering = lambda _: None
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.asked = threading.Event()
        self.ending = threading.Event()
        odd = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _serve(self) -> None:
                odd.requests.append(self.command)
                odd.asked.set()
                odd.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                try:
                    odd.answering(self)
                except ConnectionError:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = _serve  # noqa: N815 (http.server's names)

        self._server = LocalServer(Handler)
        self.url = self._server.address

    def close(self) -> None:
        self.ending.set()
        self._server.close()


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[OddServer]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    server = OddServer()
    yield server
    server.close()


def client_of(odd: OddServer, slept: list[float], least: float = 1.0) -> GitHubClient:
    policy = RetryPolicy(most=0.5, tries=3, first_wait=0.1, timeout=least)
    return GitHubClient(REPOSITORY, TOKEN, odd.url, policy, AT_ONCE, slept.append, lambda: 1e6)


def answer(
    status: int, body: bytes = b"{}", headers: Mapping[str, str] | None = None
) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return send


def drip(odd: OddServer, start: bytes) -> Answering:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(start)
        while not odd.ending.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    return send


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Odd: ", b""],
    ids=["body", "header", "status"],
)
def test_a_server_that_drips_bytes_is_left_in_time(
    odd: OddServer, slept: list[float], start: bytes
) -> None:
    odd.answering = drip(odd, start)
    with pytest.raises(OutsideError, match="not answered within 1 s"):
        client_of(odd, slept).pull(7)
    assert odd.asked.wait(20)
    assert len(odd.requests) == 1  # all patience went into it


def test_what_is_not_ready_for_ever_is_asked_for_a_few_times(
    odd: OddServer, slept: list[float]
) -> None:
    odd.answering = answer(202)
    with pytest.raises(OutsideError, match="202: not ready yet, 3 times over"):
        client_of(odd, slept, 10.0).pull(7)
    assert len(odd.requests) == 3
    assert len(slept) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {"X_RateLimit_Reset": "9" * 400},
        {"X_RateLimit_Reset": "²", "X_RateLimit_Remaining": "many", "X_RateLimit_Limit": "-"},
        {"X_RateLimit_Remaining": "nan", "X_RateLimit_Limit": "inf"},
    ],
    ids=["long", "odd", "not finite"],
)
def test_headers_that_are_no_numbers_harm_no_answer(
    odd: OddServer, slept: list[float], headers: dict[str, str]
) -> None:
    encoded = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    odd.answering = answer(200, PULL, headers=encoded)
    assert client_of(odd, slept, 10.0).pull(7).number == 7


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry_After": "²".encode("latin-1").decode("latin-1")},
        {"Retry_After": "9" * 400},
        {"Retry_After": "Wed, 21 Oct 99999 07:28:00 GMT"},
        {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "9" * 400},
    ],
    ids=["square", "long", "date", "reset"],
)
def test_a_limit_that_names_no_time_is_the_usual_one(
    odd: OddServer, slept: list[float], headers: dict[str, str]
) -> None:
    odd.answering = answer(403, headers=headers)
    with pytest.raises(OutsideError, match="it would take a wait of 1 min"):
        client_of(odd, slept, 10.0).pull(7)


@pytest.mark.parametrize(
    ("location", "said"),
    [("http://[", "sent elsewhere"), ("http://example.invalid/", "sent elsewhere")],
)
def test_a_redirect_to_nowhere_is_told(
    odd: OddServer, slept: list[float], location: str, said: str
) -> None:
    odd.answering = answer(301, headers={"Location": location})
    with pytest.raises(OutsideError, match=said):
        client_of(odd, slept, 10.0).pull(7)


def test_a_redirect_in_circles_ends(odd: OddServer, slept: list[float]) -> None:
    def around(handler: BaseHTTPRequestHandler) -> None:
        path = "/b" if handler.path == "/a" else "/a"
        answer(301, headers={"Location": f"{odd.url}{path}"})(handler)

    odd.answering = around
    with pytest.raises(OutsideError, match="in circles"):
        client_of(odd, slept, 10.0).pull(7)
    assert len(odd.requests) == 3


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_write_goes_to_where_the_repository_is_now(
    odd: OddServer, slept: list[float], status: int
) -> None:
    asked: list[tuple[str, str, bytes]] = []

    def moved(handler: BaseHTTPRequestHandler) -> None:
        asked.append((handler.command, handler.path, odd.bodies[-1]))
        if handler.path.startswith("/repositories/12/"):
            return answer(201, b'{"id": 1, "html_url": "there"}')(handler)
        return answer(status, headers={"Location": "/repositories/12/comments?x=1"})(handler)

    odd.answering = moved
    assert client_of(odd, slept, 10.0).create_comment(7, "hello") == "there"
    assert asked == [
        ("POST", f"/repos/{REPOSITORY}/issues/7/comments", b'{"body": "hello"}'),
        ("POST", "/repositories/12/comments?x=1", b'{"body": "hello"}'),
    ]


def test_the_token_does_not_follow_to_another_server(odd: OddServer, slept: list[float]) -> None:
    other = OddServer()
    odd.answering = answer(307, headers={"Location": f"{other.url}/a"})
    with pytest.raises(OutsideError, match="sent elsewhere"):
        client_of(odd, slept, 10.0).pull(7)
    other.close()
    assert other.requests == []


def test_an_answer_without_end_is_not_read_to_it(
    odd: OddServer, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "_MOST_BYTES", 1 << 20)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        while not odd.ending.is_set():
            handler.wfile.write(b" " * (1 << 16))

    odd.answering = endless
    with pytest.raises(OutsideError, match="more than 1 MiB"):
        client_of(odd, slept, 20.0).pull(7)
    assert len(odd.requests) == 1


def test_requests_keep_the_pace_of_githubs_guide(odd: OddServer, slept: list[float]) -> None:
    connection = Connection(10.0, 100, GUIDE, slept.append, clock=lambda: 0.0)
    odd.answering = answer(200)
    for verb in ("GET", "GET", "POST", "GET", "PATCH"):
        connection.send(verb, odd.url, {})
    connection.close()
    assert slept == [0.25, 0.25, 0.25, 1.0]


def test_the_password_of_a_netrc_does_not_replace_the_token(
    odd: OddServer, slept: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    said: list[str] = []

    def look(handler: BaseHTTPRequestHandler) -> None:
        said.append(handler.headers["Authorization"])
        answer(200, PULL)(handler)

    odd.answering = look
    client_of(odd, slept, 10.0).pull(7)
    assert said == [f"token {TOKEN}"]


@pytest.mark.parametrize("token", ["tökén", "a b", "日本", "a\nb"])
def test_a_token_that_is_none_is_named_and_the_text_left(
    odd: OddServer, project: Project, report_file: Callable[..., Path], tmp_path: Path, token: str
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": HEAD}}}))
    done = project.perfci(
        *("comment", str(report_file()), "--event", str(event), "--repository", REPOSITORY),
        GITHUB_TOKEN=token,
        GITHUB_API_URL=odd.url,
    ).without_traceback()
    assert done.code == 2
    assert "[bad-token]" in done.err
    assert token not in done.text
    assert (project.folder / "perfci-comment.md").exists()
    assert odd.requests == []
