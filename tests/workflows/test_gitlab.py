"""The pipeline that ``init --gitlab`` writes: GitLab's own schema takes it, and its scripts run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.builders.project import Project
from tests.lacking import needed

pytestmark = pytest.mark.processes

BIN = Path(sys.executable).parent
INSTALL = ("--install", "pip install perfci-here", "--report-install", "pip install perfci-here")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.commit("first")
    return project


def written(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.perfci("init", "--gitlab", *INSTALL, *arguments).without_traceback()
    assert done.code == 0, done.text
    return YAML(typ="safe").load(project.folder / ".gitlab/perfci.yml")


def script(job: dict[str, Any]) -> str:
    return "\n".join(job["script"])


def schema_says(*files: Path) -> str:
    """Return what GitLab's own schema of CI files has against ``files``."""
    needed("check_jsonschema")
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_gitlabs_schema_takes_both_files_and_not_a_broken_one(project: Project) -> None:
    written(project, "--runner", "gpu", "--runner", "a100", "--python-version", "3.12")
    pipeline, root = project.folder / ".gitlab/perfci.yml", project.folder / ".gitlab-ci.yml"
    assert schema_says(pipeline, root) == ""
    pipeline.write_text(pipeline.read_text().replace("expire_in: 1 week", "expire_in: [1]"))
    assert "expire_in" in schema_says(pipeline)


def test_the_job_that_measures_has_the_runners_tags_and_no_token(project: Project) -> None:
    pipeline = written(project, "--runner", "gpu", "--runner", "a100")
    measuring, commenting = pipeline["perfci"], pipeline["perfci-comment"]
    assert measuring["tags"] == ["gpu", "a100"]
    assert "tags" not in commenting
    assert "environment" not in measuring  # the token's variable is the environment's
    assert commenting["environment"] == {"name": "perfci", "action": "access"}
    assert "pip install perfci-here" in script(measuring)
    assert set(measuring["artifacts"]["reports"]) == {"junit", "codequality"}


def test_what_exists_is_kept_and_the_line_to_add_is_said(project: Project) -> None:
    project.write(".gitlab-ci.yml", "stages: [test]\n")
    done = project.perfci("init", "--gitlab", *INSTALL)
    assert "add to   .gitlab-ci.yml: include: [local: .gitlab/perfci.yml]" in done.out
    assert (project.folder / ".gitlab-ci.yml").read_text() == "stages: [test]\n"
    again = project.perfci("init", "--gitlab", *INSTALL)
    assert "kept     .gitlab/perfci.yml\n" in again.out
    other = project.perfci("init", "--gitlab", *INSTALL, "--runner", "other")
    assert "kept     .gitlab/perfci.yml (differs" in other.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gitlab", "--shards", "2"), "[not-on-gitlab]"),
        (("--gitlab", "--with", "nightly"), "[not-on-gitlab]"),
        (("--gitlab", "--runner", "a b"), "[unfit-for-a-workflow]"),
        (("--gitlab", "--install", "pip install torch"), "[install-without-perfci]"),
        (("--runner", "gpu"), "add --github or --gitlab"),
    ],
)
def test_what_cannot_be_written_is_refused(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    done = project.perfci("init", *arguments).without_traceback()
    assert done.code == 2, done.text
    assert said in done.text
    assert not (project.folder / ".gitlab").exists()


def test_every_option_that_the_scripts_give_is_one_that_perfci_has(project: Project) -> None:
    pipeline = written(project)
    for job, command in (("perfci", "compare"), ("perfci-comment", "comment")):
        text = re.sub(r"\\\n", " ", script(pipeline[job]))
        asked = re.findall(rf"perfci {command} (.*)", text)
        known = project.perfci(command, "--help").out
        assert asked
        for option in re.findall(r"(?<!\S)--[a-z-]+", text):
            assert option in known or option in {"--quiet", "--detach", "--unreadable"}, option


STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
[ "$1" = -m ] && mkdir -p "$3/bin"
exit 0
"""


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("{}", "perfci comment perfci-report/report.json --page"),
        (None, "perfci comment --unreadable the job that measures left no report"),
        ("link", "perfci comment --unreadable the job that measures left no report"),
    ],
)
def test_the_job_that_comments_reads_only_a_plain_file(
    project: Project, tmp_path: Path, left: str | None, expected: str
) -> None:
    """The script itself is run, with stubs in the place of perfci and Python."""
    pipeline = written(project)
    project.commit("pipeline")
    project.git("remote", "add", "origin", str(project.folder))
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("perfci", "python", "pip"):
        (stubs / name).write_text(STUB)
        (stubs / name).chmod(0o755)
    report = project.folder / "perfci-report/report.json"
    report.parent.mkdir()
    if left == "link":
        report.symlink_to("/etc/passwd")
    elif left:
        report.write_text(left)
    environment = {
        "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": project.git("branch", "--show-current").strip(),
        "CI_JOB_URL": "https://gitlab.example/jobs/1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(pipeline["perfci-comment"])],
        cwd=project.folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1].startswith(expected)
    assert calls[-1].endswith("--details https://gitlab.example/jobs/1/artifacts/browse")


def test_the_job_that_measures_leaves_no_token_in_the_remote(
    project: Project, tmp_path: Path
) -> None:
    pipeline = written(project)
    project.commit("pipeline")
    project.git("remote", "add", "origin", "https://gitlab-ci-token:secret@gitlab.example/o/m.git")
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("perfci", "python", "pip"):
        (stubs / name).write_text(STUB)
        (stubs / name).chmod(0o755)
    environment = {
        "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "CI_PROJECT_URL": "https://gitlab.example/o/m",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "a" * 40,
        "CI_COMMIT_SHA": "b" * 40,
    }
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(pipeline["perfci"])],
        cwd=project.folder,
        env=os.environ | environment,
        check=True,
    )
    assert project.git("remote", "get-url", "origin").strip() == "https://gitlab.example/o/m.git"
    last = (tmp_path / "calls").read_text().splitlines()[-1]
    assert last.startswith(f"perfci compare {'a' * 40} {'b' * 40} --python python --json")
