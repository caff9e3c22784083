"""A fake Forgejo with pull request 7, and a step of its Actions that runs the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfci.forges.http import Pace
from perfci.report.exporters.json import render as render_json
from tests.builders.project import Done, Project
from tests.forges.forgejo.server import REPOSITORY, TOKEN, FakeForgejo, Pull
from tests.forges.github.conftest import BASE, HEAD, report_of


@pytest.fixture
def forgejo(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeForgejo]:
    """A Forgejo; at the end, nothing may have broken the description of its API."""
    monkeypatch.setattr("perfci.forges.rest.GUIDE", Pace())
    fake = FakeForgejo()
    fake.pulls[7] = Pull(7, HEAD, BASE)
    fake.commits |= {BASE: (), HEAD: (BASE,)}
    fake.branches["main"] = BASE
    yield fake
    fake.close()
    assert fake.violations == []


@pytest.fixture
def report_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a report of ``sha``, and return its path."""

    def write(sha: str = HEAD, **changed: Any) -> Path:
        path = tmp_path / "report.json"
        path.write_text(render_json(report_of(sha, **changed)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def step(project: Project, forgejo: FakeForgejo, tmp_path: Path) -> Callable[..., Done]:
    """Run the command in a step of a workflow that the pull request started."""
    event = tmp_path / "event.json"
    here = {"full_name": REPOSITORY, "owner": {"login": "octo"}}
    head = {"sha": HEAD, "ref": "feature", "repo": here}
    event.write_text(
        json.dumps({"number": 7, "pull_request": {"number": 7, "head": head}, "repository": here})
    )

    def perfci(*arguments: object, **environment: str) -> Done:
        variables = {
            "GITHUB_ACTIONS": "true",
            "FORGEJO_ACTIONS": "true",
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": forgejo.api,
            "GITHUB_SERVER_URL": "https://forgejo.example",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_RUN_ID": "12",
        }
        given = {name: text for name, text in (variables | environment).items() if text}
        done = project.perfci("comment", *map(str, arguments), **given)
        assert TOKEN not in done.text
        return done.without_traceback()

    return perfci
