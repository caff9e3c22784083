"""The workflows install the perfci that wrote them, as far as pip noted where it came from."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from perfci.commands import workflows as module
from perfci.commands.workflows import own_requirement
from perfci.errors import UsageError
from perfci.version import VERSION
from tests.builders.project import Project

SHA = "3f786850e387550fdab836ed7e6dc881de23001b"


def noted(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    """Let pip have noted ``origin`` in direct_url.json, or nothing."""
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(read_text={"direct_url.json": text}.get)
    monkeypatch.setattr(module, "distribution", {"perfci": found}.get)


def test_from_an_index_it_is_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    noted(monkeypatch, None)
    assert own_requirement() == f"perfci=={VERSION}"


def test_from_a_repository_it_is_that_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    vcs = {"vcs": "git", "commit_id": SHA, "requested_revision": "main"}
    noted(monkeypatch, {"url": "https://github.com/o/perfci", "vcs_info": vcs})
    assert own_requirement() == f"perfci @ git+https://github.com/o/perfci@{SHA}"


def test_from_a_folder_it_is_the_commit_that_origin_has(
    monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    sha = project.commit("pushed")
    project.git("remote", "add", "origin", "git@github.com:o/perfci.git")
    noted(monkeypatch, {"url": project.folder.as_uri(), "dir_info": {"editable": True}})
    with pytest.raises(UsageError, match="other machines can't install"):
        own_requirement()
    project.git("update-ref", "refs/remotes/origin/main", sha)
    assert own_requirement() == f"perfci @ git+https://github.com/o/perfci@{sha}"
    project.commit("not pushed")
    with pytest.raises(UsageError, match="other machines can't install"):
        own_requirement()
