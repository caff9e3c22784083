"""No proxy before 127.0.0.1, and reports to post."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfci.report.exporters.json import render as render_json
from tests.forges.github.conftest import HEAD, report_of


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's proxy out of the way to 127.0.0.1."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def slept() -> list[float]:
    """How long the client would have slept, in s, each time."""
    return []


@pytest.fixture
def report_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a report of ``sha``, and return its path."""

    def write(sha: str = HEAD, name: str = "report.json", **changed: Any) -> Path:
        path = tmp_path / name
        path.write_text(render_json(report_of(sha, **changed)), encoding="utf-8")
        return path

    return write
