"""The pipeline that ``init --gitlab`` writes: GitLab's own schema takes it, and its scripts run."""

from __future__ import annotations

import json
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
from tests.workflows.examples import run_step
from tests.workflows.remote import IDENTITY, Remote

pytestmark = pytest.mark.processes

BIN = Path(sys.executable).parent
INSTALL = ("--install", "pip install perfci-here", "--report-install", "pip install perfci-here")
SHARDED = ("--shards", "3", "--nightly-runner", "gpu,a100", "--nightly-runner", "gpu,h100")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.commit("first")
    return project


def written(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.perfci("init", "--gitlab", *INSTALL, *arguments).without_traceback()
    assert done.code == 0, done.text
    return YAML(typ="safe").load(project.folder / ".gitlab/perfci.yml")


def nightly(project: Project, *arguments: str, file: str = "nightly") -> dict[str, Any]:
    """Return the jobs of the nights, or of a search, as GitLab merges what they extend."""
    written(project, "--with", "nightly", *arguments)
    jobs = YAML(typ="safe").load(project.folder / f".gitlab/perfci-{file}.yml")

    def whole(name: str) -> dict[str, Any]:
        job = jobs[name]
        above = whole(job["extends"]) if "extends" in job else {}
        variables = {**above.get("variables", {}), **job.get("variables", {})}
        return {**above, **job, "variables": variables}

    return {name: whole(name) for name in jobs}


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


def test_gitlabs_schema_takes_shards_and_nights(project: Project) -> None:
    jobs = nightly(project, *SHARDED) | nightly(project, *SHARDED, file="bisect")
    written(project, *SHARDED)
    folder = project.folder / ".gitlab"
    # what begins with a dot is checked where it is a part of a job: a schema takes anything there
    whole = {name: job for name, job in jobs.items() if not name.startswith(".")}
    merged = folder / "merged.json"
    merged.write_text(json.dumps(whole))
    files = (*folder.glob("perfci*.yml"), merged)
    assert schema_says(*files, project.folder / ".gitlab-ci.yml") == ""
    merged.write_text(json.dumps(whole).replace('"90 days"', "[1]"))
    assert "expire_in" in schema_says(merged)
    included = YAML(typ="safe").load(project.folder / ".gitlab-ci.yml")["include"]
    assert [one["local"] for one in included] == [
        ".gitlab/perfci.yml",
        ".gitlab/perfci-nightly.yml",
        ".gitlab/perfci-bisect.yml",
    ]


def test_of_several_shards_one_job_decides(project: Project) -> None:
    pipeline = written(project, "--shards", "3")
    measuring, merging = pipeline["perfci"], pipeline["perfci-merge"]
    assert measuring["parallel"] == 3
    assert measuring["allow_failure"] == {"exit_codes": [1, 3]}
    assert "reports" not in measuring["artifacts"]
    assert '--shard "$CI_NODE_INDEX/3"' in script(measuring)
    assert "allow_failure" not in merging
    assert (merging["needs"], merging["rules"][0]["when"]) == (["perfci"], "always")
    assert pipeline["perfci-comment"]["needs"] == ["perfci-merge"]
    assert "perfci merge perfci-report/shard-*.json --expect 3" in script(merging)
    assert set(merging["artifacts"]["reports"]) == {"junit", "codequality"}
    assert "perfci-merge" not in written_anew(project)


def written_anew(project: Project) -> dict[str, Any]:
    """Return the pipeline of one job alone."""
    (project.folder / ".gitlab/perfci.yml").unlink()
    return written(project)


def test_nights_are_measured_on_each_machine_and_no_token_of_theirs_can_write(
    project: Project,
) -> None:
    jobs = nightly(project, *SHARDED)
    measuring = [jobs["perfci-nightly-1"], jobs["perfci-nightly-2"]]
    assert [one["tags"] for one in measuring] == [["gpu", "a100"], ["gpu", "h100"]]
    assert [one["variables"]["GPU"] for one in measuring] == ["1", "2"]
    assert jobs["perfci-nightly-merge"]["needs"] == ["perfci-nightly-1", "perfci-nightly-2"]
    for name, job in jobs.items():
        assert ("environment" in job) == (name == "perfci-nightly-store")
        assert job["rules"][0]["if"].startswith('$PERFCI_NIGHTLY == "true" &&')
        assert job["rules"][0]["when"] == "always"


def test_a_search_is_started_by_its_variable_alone_on_a_machine_of_ones_choice(
    project: Project,
) -> None:
    jobs = nightly(project, *SHARDED, file="bisect")
    searches = [jobs["perfci-bisect-1"], jobs["perfci-bisect-2"]]
    assert [job["tags"] for job in searches] == [["gpu", "a100"], ["gpu", "h100"]]
    for job in searches:
        (rule,) = job["rules"]
        assert rule["if"] == "$PERFCI_BISECT && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"
        assert rule["when"] == "manual"
        assert "environment" not in job


CHECK = "perfci check HEAD --python python --no-strict --if-stored"


class Nights:
    """A project of GitLab's on this machine, and its nightly jobs' scripts."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.jobs = nightly(project) | nightly(project, file="bisect")
        self.remote = Remote(folder)
        self.remote.bare.with_name("name.git").symlink_to(self.remote.bare)
        self.folder = folder
        self.stubs = folder / "stubs"
        self.stubs.mkdir()
        for name in ("perfci", "python", "pip"):
            (self.stubs / name).write_text(STUB)
            (self.stubs / name).chmod(0o755)

    def run(self, job: str, checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_SHA": "0123456789abcdef"}
        asked = {
            name: variables.get(str(value).removeprefix("$"), str(value))
            for name, value in self.jobs[job]["variables"].items()
        }
        return run_step(
            script(self.jobs[job]),
            checkout,
            **asked | IDENTITY | environment,
            CI_PROJECT_URL=(self.folder / "server/owner/name").as_uri(),
            PERFCI_GITLAB_TOKEN="a-token",
            PATH=f"{self.stubs}{os.pathsep}{os.environ['PATH']}",
            CALLS=str(self.folder / "calls"),
        )

    def store(self, text: str, made_from: str) -> subprocess.CompletedProcess[str]:
        checkout = self.remote.checkout(f"job-{len(list(self.folder.glob('job-*')))}")
        (checkout / "perfci-history").mkdir()
        (checkout / "perfci-history/history.jsonl").write_text(text)
        (checkout / "perfci-history/made-from").write_text(made_from)
        return self.run("perfci-nightly-store", checkout)

    def stored(self) -> str:
        return self.remote.git(self.remote.bare, "show", "perfci-history:history.jsonl")


def test_a_night_is_stored_on_the_state_that_it_was_made_from_alone(
    project: Project, tmp_path: Path
) -> None:
    nights = Nights(project, tmp_path)
    done = nights.store("one\n", "")
    assert done.returncode == 0, done.stderr
    tip = nights.remote.git(nights.remote.bare, "rev-parse", "perfci-history")
    assert nights.store("one\ntwo\n", tip).returncode == 0
    again = nights.store("one\nof Monday\n", tip)
    assert again.returncode == 1
    assert "run the job 'perfci-nightly-merge' of this run again" in again.stdout
    assert "a-token" not in again.stdout + again.stderr
    assert nights.stored() == "one\ntwo\n"
    empty = nights.run("perfci-nightly-store", nights.remote.checkout("nothing"))
    assert (empty.returncode, "nothing was merged" in empty.stdout) == (1, True)


def test_a_night_takes_what_was_stored_and_leaves_what_it_recorded(
    project: Project, tmp_path: Path
) -> None:
    nights = Nights(project, tmp_path)
    assert nights.store("one\n", "").returncode == 0
    for job, last in (
        ("perfci-nightly-1", CHECK),
        ("perfci-bisect-1", "perfci bisect --python python --budget 40m --history"),
        ("perfci-nightly-merge", "perfci history export perfci-history/history.jsonl --history"),
    ):
        checkout = nights.remote.checkout(f"of-{job}")
        done = nights.run(job, checkout, PERFCI_BISECT="4be81f09c2d7")
        assert done.returncode == 0, done.stderr
        calls = (tmp_path / "calls").read_text().splitlines()
        assert any(one.startswith("perfci history import /") for one in calls)
        assert calls[-1].startswith(last)
        (tmp_path / "calls").unlink()
    assert (checkout / "perfci-history/made-from").read_text() == nights.remote.git(
        nights.remote.bare, "rev-parse", "perfci-history"
    )


@pytest.mark.parametrize("fails", ["nightly", "check"])
def test_a_night_that_failed_or_regressed_is_red_and_left_all_the_same(
    project: Project, tmp_path: Path, fails: str
) -> None:
    nights = Nights(project, tmp_path)
    done = nights.run("perfci-nightly-1", nights.remote.checkout("night"), FAILS=fails)
    assert done.returncode == 1
    calls = (tmp_path / "calls").read_text().splitlines()
    exported, checked = calls[-2:]
    assert exported.startswith("perfci history export perfci-night/history-1.jsonl --history")
    assert checked == f"{CHECK} --json perfci-night/report-1.json --junit junit.xml"
    assert nights.jobs["perfci-nightly-1"]["artifacts"]["reports"] == {"junit": "junit.xml"}


def test_the_job_that_measures_has_the_runners_tags_and_no_token(project: Project) -> None:
    pipeline = written(project, "--runner", "gpu", "--runner", "a100")
    measuring, commenting = pipeline["perfci"], pipeline["perfci-comment"]
    assert measuring["tags"] == ["gpu", "a100"]
    assert "tags" not in commenting
    assert "environment" not in measuring  # the token's variable is the environment's
    assert commenting["environment"] == {"name": "perfci", "action": "access"}
    assert "pip install perfci-here" in script(measuring)
    assert set(measuring["artifacts"]["reports"]) == {"junit", "codequality"}


def test_the_tag_gpu_is_for_machines_that_have_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "tags" not in written(project)["perfci"]
    assert "tags" not in nightly(project)["perfci-nightly-1"]
    (project.folder / ".gitlab/perfci.yml").unlink()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert written(project)["perfci"]["tags"] == ["gpu"]


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
        (("--gitlab", "--shards", "201"), "[not-on-gitlab]"),
        (("--gitlab", "--with", "on-demand"), "[not-on-gitlab]"),
        (("--gitlab", *INSTALL, "--runner", "a b"), "[unfit-for-a-workflow]"),
        (("--gitlab", *INSTALL, "--nightly-runner", "a b"), "[unfit-for-a-workflow]"),
        (("--gitlab", *INSTALL, "--benchmarks", "file.txt"), "[not-a-folder]"),
        (("--github", "--action", f"o/p@{40 * 'a'}", "--runner", "a b"), "[unfit-for-a-workflow]"),
        (("--gitlab", "--install", "pip install torch"), "[install-without-perfci]"),
        (("--gitlab", "--install", "perfci @ git+https://x"), "[not-a-command]"),
        (("--runner", "gpu"), "Add --github or --gitlab"),
    ],
)
def test_what_cannot_be_written_is_refused(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    project.write("file.txt", "in the place of a folder\n")
    project.commit("second")
    done = project.perfci("init", *arguments).without_traceback()
    assert done.code == 2, done.text
    assert said in done.text
    assert project.git("status", "--porcelain", "--ignored") == ""


def test_every_option_that_the_scripts_give_is_one_that_perfci_has(project: Project) -> None:
    pipeline = nightly(project, *SHARDED) | nightly(project, *SHARDED, file="bisect")
    pipeline |= written(project, *SHARDED)
    for job, *commands in (
        ("perfci", "compare"),
        ("perfci-merge", "merge"),
        ("perfci-comment", "comment"),
        ("perfci-nightly-1", "nightly", "check"),
        ("perfci-nightly-merge", "trend"),
        ("perfci-bisect-1", "bisect"),
    ):
        text = re.sub(r"\\\n", " ", script(pipeline[job]))
        others = {"--quiet", "--detach", "--unreadable", "--verify", "--history", "--kill-after"}
        assert all(f"perfci {command} " in text for command in commands)
        known = "".join(project.perfci(command, "--help").out for command in commands)
        for option in re.findall(r"(?<!\S)--[a-z-]+", text):
            assert option in known or option in others, option


STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
[ "$1" = -m ] && mkdir -p "$3/bin"
[ "$1" != "$FAILS" ]
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
