"""``perfci init --github`` as a process: what it finds out, writes, keeps and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from perfci.commands.workflows import REQUIREMENTS, WORKFLOWS
from tests.builders.project import Project
from tests.workflows.examples import ROOT, parsed
from tests.workflows.locking import LOCK

SHA = "3f786850e387550fdab836ed7e6dc881de23001b"
PERFCI = f"perfci @ git+https://github.com/o/perfci@{SHA}"
OF_A_COMMIT = {
    "url": "https://github.com/o/perfci",
    "vcs_info": {"vcs": "git", "commit_id": SHA, "requested_revision": "main"},
}


@pytest.fixture
def mine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project, and a perfci that pip says it installed from a commit."""
    project.counting(1000)
    project.commit("base")
    noted = str(project.folder.parent / "noted")
    monkeypatch.setenv("PYTHONPATH", noted, prepend=os.pathsep)
    note(project, OF_A_COMMIT)
    return project


def note(project: Project, origin: object) -> None:
    """Let what pip notes of a package say that perfci is of ``origin``."""
    noted = project.folder.parent / "noted" / "perfci-0.1.0.dist-info"
    noted.mkdir(parents=True, exist_ok=True)
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: perfci\nVersion: 0.1.0\n")
    (noted / "direct_url.json").write_text(json.dumps(origin))


def written(project: Project, name: str) -> str:
    return (project.folder / ".github" / "workflows" / name).read_text(encoding="utf-8")


ALL = (
    *("init", "--github"),
    *("--with", "baseline", "--with", "nightly"),
)


def test_all_workflows_are_written_and_the_second_time_kept(mine: Project) -> None:
    done = mine.perfci(*ALL)
    assert done.code == 0, done.text
    folder = mine.folder / ".github" / "workflows"
    assert sorted(path.name for path in folder.iterdir()) == sorted((*WORKFLOWS, REQUIREMENTS))
    assert done.out.count("wrote    .github/workflows/") == 6
    changed = folder / "perfci.yml"
    changed.write_text("mine now\n")
    (folder / "perfci-nightly.yml").unlink()
    again = mine.perfci(*ALL)
    assert again.code == 0
    assert "kept     .github/workflows/perfci.yml" in again.out
    assert "wrote    .github/workflows/perfci-nightly.yml" in again.out
    assert again.out.count("kept     .github/workflows/") == 5
    assert changed.read_text() == "mine now\n"
    assert again.out.count("differs from init's current version") == 1


def test_the_job_that_comments_installs_by_hash_and_by_commit(mine: Project) -> None:
    assert mine.perfci(*ALL, "--python-version", "3.13").code == 0
    assert written(mine, REQUIREMENTS) == LOCK.read_text(encoding="utf-8")
    hashed = "--require-hashes --only-binary :all:"
    commands = [
        f"python -m pip install {hashed} -r .github/workflows/{REQUIREMENTS}",
        f"python -m pip install --no-deps --no-build-isolation '{PERFCI}'",
    ]
    merge = parsed(written(mine, "perfci-nightly.yml"))["jobs"]["merge"]
    assert merge["steps"][1]["with"] == {"python-version": "3.12"}  # that the lock is for
    assert merge["steps"][2]["run"].splitlines()[-2:] == commands
    assert [one for one in merge["steps"] if "pip" in str(one)] == [merge["steps"][2]]
    stage_2 = parsed(written(mine, "perfci-report.yml"))["jobs"]["comment"]
    assert stage_2["steps"][1]["with"] == {"python-version": "3.12"}
    assert stage_2["steps"][2]["uses"] == f"o/perfci/actions/comment@{SHA}"
    assert "pip" not in str(stage_2)
    script = (ROOT / "actions" / "install.sh").read_text()
    assert "--require-hashes" in script
    assert f"templates/workflows/{REQUIREMENTS}" in script


def test_without_a_gpu_the_runner_is_one_of_githubs(mine: Project) -> None:
    assert mine.perfci(*ALL, CUDA_VISIBLE_DEVICES="").code == 0
    assert parsed(written(mine, "perfci.yml"))["jobs"]["measure"]["runs-on"] == "ubuntu-latest"


def test_the_default_branch_is_what_origin_says(mine: Project) -> None:
    mine.git("branch", "develop")
    mine.git("switch", "--quiet", "--create", "feature")
    clone = mine.folder.parent / "clone"
    mine.git("switch", "--quiet", "develop")
    subprocess.run(["git", "clone", "--quiet", str(mine.folder), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "switch", "--quiet", "feature"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "perfci", *ALL],
        cwd=clone,
        env=mine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (clone / ".github" / "workflows" / "perfci-baseline.yml").read_text()
    assert parsed(text)["on"]["push"]["branches"] == ["develop"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--runner", "gpu]\n    env: {A: b"),
        ("--runner", "${{ inputs.runner }}"),
        ("--python-version", '3.12"'),
        ("--install", "pip install ${{ github.head_ref }}"),
        ("--install", "one\ntwo"),
        ("--action", "mine/perfci"),
        ("--action", "mine/perfci@${{ github.sha }}"),
        ("--trigger", "comment"),
        ("--nightly-runner", "gpu, ${{x}}"),
        ("--nightly-runner", "gpu,,a100"),
        ("--shards", "257"),
        ("--shards", "0"),
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused_before_one_is_written(
    mine: Project, arguments: tuple[str, str]
) -> None:
    done = mine.perfci("init", "--github", *arguments).without_traceback()
    assert done.code == 2, done.text
    assert not (mine.folder / ".github").exists()


def test_a_branch_with_an_expression_in_its_name_is_refused(mine: Project) -> None:
    mine.git("branch", "--move", "${{x}}")
    done = mine.perfci("init", "--github").without_traceback()
    assert done.code == 2
    assert "default branch" in done.err
