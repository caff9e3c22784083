"""Servers that say odd things or aren't GitHub: a clean error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from perfci.errors import OutsideError
from perfci.forges.github import GitHubClient
from tests.builders.project import Project
from tests.forges.github.conftest import HEAD
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
        odd = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _serve(self) -> None:
                odd.requests.append(self.command)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    odd.answering(self)
                except ConnectionError:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = _serve  # noqa: N815 (http.server's names)

        self._server = LocalServer(Handler)
        self.url = self._server.address

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[OddServer]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    server = OddServer()
    yield server
    server.close()


def client_of(odd: OddServer, slept: list[float]) -> GitHubClient:
    return GitHubClient(REPOSITORY, TOKEN, odd.url, 100.0, slept.append, lambda: 1e6)


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


def test_what_is_not_ready_for_ever_is_asked_for_a_few_times(
    odd: OddServer, slept: list[float]
) -> None:
    odd.answering = answer(202)
    with pytest.raises(OutsideError, match="202, 5 times over"):
        client_of(odd, slept).pull(7)
    assert len(odd.requests) == 5
    assert slept == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_is_not_followed_and_gets_no_token(
    odd: OddServer, slept: list[float], status: int
) -> None:
    other = OddServer()
    odd.answering = answer(status, headers={"Location": f"{other.url}/a"})
    client = client_of(odd, slept)
    for ask in (lambda: client.pull(7), lambda: client.create_comment(7, "hello")):
        with pytest.raises(OutsideError, match=f"answered with {status}"):
            ask()
    other.close()
    assert other.requests == []


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
    client_of(odd, slept).pull(7)
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
