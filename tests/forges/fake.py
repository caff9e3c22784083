"""A forge on 127.0.0.1: what the fakes of all of them have in common.

Each checks every request, and its own answers, against a description of the forge's API, and adds
what that doesn't say: pages, a token's rights, the longest texts. Faults come before or after a
write took effect. What breaks the description is collected in ``violations``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from tests.forges.local_server import LocalServer
from tests.forges.openapi import Description, Operation

TOKEN = "token-of-the-tests"
_NO_ANSWER = 0
Answered = tuple[int, Any, Mapping[str, str]]
"""A status, what becomes JSON, and headers."""


@dataclass(slots=True)
class Fault:
    """What goes wrong with ``times`` requests: before or after the forge did what it was asked."""

    method: str
    path: str
    when: str = "before"
    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = "<html>Bad Gateway</html>"
    times: int = 1

    def takes(self, method: str, path: str, when: str) -> bool:
        hit = method == self.method and when == self.when and re.search(self.path, path)
        if not hit or not self.times:
            return False
        self.times -= 1
        return True


def dropped(method: str, path: str, when: str = "before") -> Fault:
    """Return a fault that closes the connection without an answer."""
    return Fault(method, path, when, status=_NO_ANSWER)


def limited(method: str, path: str, wait: int, status: int = 403) -> Fault:
    """Return a secondary rate limit that asks for ``wait`` s."""
    said = {"message": "You have exceeded a secondary rate limit. Please wait."}
    return Fault(method, path, "before", status, {"Retry-After": str(wait)}, json.dumps(said))


class FakeForge:
    """A forge of one repository on a socket. Each operation of its description is a method."""

    name: ClassVar[str]
    description: ClassVar[Description]
    prefix: ClassVar[str] = ""
    invalid: ClassVar[int] = 422
    """The status of a request that breaks the description."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.violations: list[str] = []
        self.before: Callable[[str], None] = lambda _operation: None
        self._next = 1000
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = LocalServer(handler)

    @property
    def url(self) -> str:
        return self._server.address

    @property
    def api(self) -> str:
        return f"{self.url}{self.prefix}"

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        headers: Mapping[str, str],
    ) -> Answered:
        """Return the answer to one request."""
        if not self.may_enter(headers):
            return 401, self.wrong("Bad credentials"), {}
        path = path.removeprefix(self.prefix)
        asked = self.description.operation(method, path)
        if asked is None:
            self.violations.append(f"{self.name} has no {method} {path}")
            return 404, self.wrong("Not Found"), {}
        if not self.is_here(asked):
            return 404, self.wrong("Not Found"), {}
        self.look_at(asked, headers)
        faults = self.description.request_faults(asked, query, body)
        if faults:
            self.violations += faults
            return self.invalid, self.wrong("; ".join(faults)), {}
        self.before(asked.id)
        refusal = self.refusal(asked)
        if refusal:
            return 403, refusal, {}
        does: Callable[[Mapping[str, str], Mapping[str, Any], Any], tuple[int, Any]] = getattr(
            self, "_" + re.sub(r"\W", "_", asked.id)
        )
        status, answer = does(asked.values, query, body)
        more: dict[str, str] = {}
        if isinstance(answer, list):
            answer, more = self.page(asked, answer, query, f"{self.url}{path}")
        self.violations += self.description.answer_faults(asked, status, answer)
        return status, answer, more

    def may_enter(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == f"token {TOKEN}"

    def is_here(self, asked: Operation) -> bool:
        """Say whether the operation is of the one repository."""
        raise NotImplementedError

    def look_at(self, asked: Operation, headers: Mapping[str, str]) -> None:
        """Collect what is wrong about a request's headers."""

    def refusal(self, _asked: Operation) -> dict[str, str] | None:
        """Return what is answered where the token lacks the right."""
        return None

    def wrong(self, why: str) -> dict[str, str]:
        return {"message": why}

    def page(
        self, _asked: Operation, answer: list[Any], query: Mapping[str, str], address: str
    ) -> tuple[Any, dict[str, str]]:
        return page_of(answer, query, address)

    def _new(self) -> int:
        self._next += 1
        return self._next

    def close(self) -> None:
        self._server.close()

    def wrote(self, method: str = "POST|PATCH|PUT|DELETE") -> list[tuple[str, str]]:
        """Return the requests that were to write, in their order."""
        return [one for one in self.requests if re.fullmatch(method, one[0])]


def page_of(
    every: list[Any], query: Mapping[str, str], address: str, many: str = "per_page"
) -> tuple[list[Any], dict[str, str]]:
    """Return the page that is asked for, and the header that leads to the next."""
    size = min(int(query.get(many, "30")), 100)
    number = int(query.get("page", "1"))
    end = size * number
    more = {"Link": f'<{address}?page={number + 1}>; rel="next"'} if end < len(every) else {}
    return every[end - size : end], more


class _Handler(BaseHTTPRequestHandler):
    fake: ClassVar[FakeForge]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        fake = self.fake
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        fake.requests.append((self.command, parts.path))
        for fault in fake.faults:
            if fault.takes(self.command, parts.path, "before"):
                return self._fail(fault)
        query = _query(parts.query)
        status, answer, headers = fake.answer(
            self.command, parts.path, query, body, dict(self.headers)
        )
        for fault in fake.faults:
            if fault.takes(self.command, parts.path, "after"):
                return self._fail(fault)
        text = "" if answer is None else json.dumps(answer)
        return self._send(status, headers, text)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 (http.server's names)

    def _fail(self, fault: Fault) -> None:
        if fault.status == _NO_ANSWER:
            self.close_connection = True
            return
        self._send(fault.status, fault.headers, fault.body)

    def _send(self, status: int, headers: Mapping[str, str], text: str) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _query(text: str) -> dict[str, Any]:
    """Return the parameters; one that ends with ``[]`` is a list."""
    pairs = parse_qsl(text, keep_blank_values=True)
    return {
        name: [value for other, value in pairs if other == name] if name.endswith("[]") else value
        for name, value in pairs
    }
