"""Servers that answer oddly in the place of GitHub: an error in words, and no token in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from perfci.report.exporters.json import render as render_json
from tests.builders.project import Done, Project
from tests.forges.fake import TOKEN
from tests.forges.github.conftest import HEAD, report_of
from tests.forges.local_server import LocalServer

pytestmark = pytest.mark.processes

Answer = tuple[int, dict[str, str], str]


class Odd:
    """Gives its answers in turn, the last one for ever; keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.heads: list[str] = []
        odd = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                odd.heads.append(str(self.headers))
                answers = odd.answers
                status, headers, text = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

        self._server = LocalServer(Handler)
        self.url = self._server.address

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def odd() -> Iterator[Odd]:
    one = Odd()
    yield one
    one.close()


@pytest.fixture
def elsewhere() -> Iterator[Odd]:
    one = Odd()
    one.answers = [(200, {}, "{}")]
    yield one
    one.close()


@pytest.fixture
def comment(tmp_path: Path, odd: Odd, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Done]:
    """Run the command against the odd server, and try each request twice."""
    monkeypatch.setattr("perfci.forges.github._TRIES", 2)
    project = Project(tmp_path / "project")
    project.write("report.json", render_json(report_of(HEAD)))

    def run() -> Done:
        asked = ("--pull", "7", "--repository", "octo/models")
        done = project.perfci(
            *("comment", "report.json", *asked),
            GITHUB_API_URL=odd.url,
            GITHUB_TOKEN=TOKEN,
        )
        assert TOKEN not in done.text
        assert (project.folder / "perfci-comment.md").exists()
        return done.without_traceback()

    return run


def test_a_page_of_html_is_no_answer(comment: Callable[[], Done], odd: Odd) -> None:
    odd.answers = [(200, {"Content-Type": "text/html"}, "<html>Sign in</html>")]
    done = comment()
    assert done.code == 4
    assert "[strange-answer]" in done.err
    assert "A proxy may have answered" in done.err


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, {"message": f"the token {TOKEN} is unknown"}),
        (403, {"message": f"{TOKEN}"}),
        (500, {"message": f"no {TOKEN}"}),
    ],
)
def test_a_server_that_repeats_the_token_has_it_in_no_log(
    comment: Callable[[], Done], odd: Odd, status: int, said: dict[str, object]
) -> None:
    odd.answers = [(status, {}, json.dumps(said))]
    done = comment()
    assert done.code == {401: 2, 403: 0, 500: 4}[status]
    assert f"answered with {status} " in done.err
    assert "…" in done.err


def test_another_server_never_gets_the_token(
    comment: Callable[[], Done], odd: Odd, elsewhere: Odd
) -> None:
    odd.answers = [(307, {"Location": f"{elsewhere.url}/{TOKEN}"}, "")]
    done = comment()
    assert done.code == 4
    assert "answered with 307" in done.err
    assert elsewhere.heads == []


def test_a_limit_is_waited_for_as_long_as_it_asks(comment: Callable[[], Done], odd: Odd) -> None:
    odd.answers = [(429, {"Retry-After": "1"}, "Retry later"), (404, {}, "{}")]
    done = comment()
    assert "answered with 404" in done.err
    assert len(odd.heads) == 2


def test_a_limit_of_an_hour_is_an_error_at_once(comment: Callable[[], Done], odd: Odd) -> None:
    odd.answers = [(429, {"Retry-After": "3600"}, "Retry later")]
    done = comment()
    assert done.code == 4
    assert "it would take a wait of 1 h" in done.err
    assert len(odd.heads) == 1
