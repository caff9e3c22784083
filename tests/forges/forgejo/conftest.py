"""A fake Forgejo with pull request 7, and a step of its Actions that runs the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfci.forges.http import Pace
from tests.builders.project import Done, Project
from tests.forges.forgejo.server import REPOSITORY, TOKEN, FakeForgejo, Pull
from tests.forges.github.conftest import BASE, HEAD


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
