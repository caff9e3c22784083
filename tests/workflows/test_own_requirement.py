"""The workflows install the perfci that wrote them, as far as pip noted where it came from."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from perfci.commands import workflows as module
from perfci.commands.workflows import CiOptions, github_workflows, perfci_source
from perfci.errors import UsageError
from perfci.measure.checkout.git import open_repository
from tests.builders.project import Project

SHA = "3f786850e387550fdab836ed7e6dc881de23001b"


def noted(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    """Let pip have noted ``origin`` in direct_url.json, or nothing."""
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(read_text={"direct_url.json": text}.get)
    monkeypatch.setattr(module, "distribution", {"perfci": found}.get)


@pytest.mark.parametrize(
    "origin",
    [
        None,  # from an index, which may be any, or from a path that no installer noted
        {"url": "file:///tmp/perfci-0.1.0-py3-none-any.whl", "archive_info": {}},
        {"url": "https://example.invalid/perfci-0.1.0.tar.gz", "archive_info": {}},
        {"url": "file:///nowhere/perfci", "dir_info": {}},
    ],
)
def test_from_anywhere_else_only_the_actions_repository_counts(
    monkeypatch: pytest.MonkeyPatch, project: Project, origin: object
) -> None:
    noted(monkeypatch, origin)
    project.commit("first")
    repository = open_repository(project.folder)
    with pytest.raises(UsageError) as caught:
        github_workflows(repository, CiOptions(more=("nightly",)))
    assert "--action" in caught.value.advice
    options = CiOptions(more=("nightly", "baseline"), action=f"o/perfci@{SHA}")
    for host in ("github.com", "forge.example"):
        project.git("remote", "add", host, f"git@{host}:o/models.git")
        project.git("config", "remote.origin.url", f"git@{host}:o/models.git")
        texts = "\n".join(github_workflows(repository, options).values())
        installed = {line.strip() for line in texts.splitlines() if "pip install" in line}
        assert "perfci==" not in texts
        assert [
            line for line in installed if f"'perfci @ git+https://{host}/o/perfci@{SHA}'" in line
        ]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pyproject.toml": '[project]\nname = "a"\ndependencies = ["numpy"]\n'}, ". torch"),
        ({"pyproject.toml": '[project]\nname = "a"\ndependencies = ["torch>=2"]\n'}, "."),
        ({"pyproject.toml": '[project]\nname = "a"\ndependencies = ["torchvision"]\n'}, ". torch"),
        (
            {
                "pyproject.toml": '[project]\nname = "a"\ndependencies = []\n'
                '[project.optional-dependencies]\ngpu = ["torch"]\n'
            },
            ". torch",
        ),
        ({"pyproject.toml": '[project]\n[tool.poetry.dependencies]\ntorch = "^2"\n'}, "."),
        ({"setup.py": "import torch\nfrom torch import nn\nsetup()\n"}, "--no-build-isolation ."),
        ({"setup.py": "from torch.utils import x\nsetup()\n"}, "torch setuptools wheel"),
        ({"setup.py": "import torchless\nsetup()\n"}, ". torch"),
        ({"setup.py": 'setup(install_requires=["numpy", "torch"])\n'}, "."),
        ({"setup.py": "setup()\n", "setup.cfg": "install_requires =\n    torch >= 2\n"}, "."),
        ({"requirements.txt": "numpy\n# torch\n"}, "-r requirements.txt torch"),
        ({"requirements.txt": "numpy\ntorch==2.5\n"}, "-r requirements.txt"),
        ({"toy/__init__.py": ""}, "torch"),
    ],
)
def test_the_job_that_measures_gets_torch_if_the_project_does_not_bring_it(
    project: Project, files: dict[str, str], command: str
) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.commit("first", **{**files, "toy/model.py": "from torch import nn\n"})
    options = CiOptions(action=f"o/perfci@{SHA}")
    texts = github_workflows(open_repository(project.folder), options).values()
    assert f"python -m pip install {command}\n" in "\n".join(texts)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/o/perfci",
        "ssh://git@github.com/o/perfci.git",
        "https://f.example/o/perfci",
    ],
)
def test_from_a_repository_it_is_that_commit(
    monkeypatch: pytest.MonkeyPatch, project: Project, url: str
) -> None:
    project.git("remote", "add", "origin", "git@f.example:o/models.git")
    vcs = {"vcs": "git", "commit_id": SHA, "requested_revision": "main"}
    noted(monkeypatch, {"url": url, "vcs_info": vcs})
    page, commit = perfci_source(open_repository(project.folder), "")
    assert (page.rpartition("//")[2].partition("/")[2], commit) == ("o/perfci", SHA)
    noted(monkeypatch, {"url": "https://elsewhere.example/o/perfci", "vcs_info": vcs})
    with pytest.raises(UsageError, match="not a commit of a repository on GitHub"):
        perfci_source(open_repository(project.folder), "")


def test_from_a_folder_it_is_the_commit_that_origin_has(
    monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    sha = project.commit("pushed")
    repository = open_repository(project.folder)
    project.git("remote", "add", "origin", "git@github.com:o/perfci.git")
    noted(monkeypatch, {"url": project.folder.as_uri(), "dir_info": {"editable": True}})
    with pytest.raises(UsageError, match="not a commit of a repository on GitHub"):
        perfci_source(repository, "")
    project.git("update-ref", "refs/remotes/origin/main", sha)
    assert perfci_source(repository, "") == ("https://github.com/o/perfci", sha)
    project.commit("not pushed")
    with pytest.raises(UsageError, match="not a commit of a repository on GitHub"):
        perfci_source(repository, "")
