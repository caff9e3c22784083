"""The nightly jobs that join and push the history: nothing that a night recorded is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfci.commands.workflows import render_workflow
from perfci.history.interchange import from_lines, to_lines
from perfci.model.run import RecordedRun
from tests.builders.project import Project
from tests.builders.recorded import HERE, THERE, recorded
from tests.workflows.examples import PLAIN, parsed, run_step, step
from tests.workflows.remote import Remote

WORKFLOW = parsed(render_workflow("perfci-nightly.yml", PLAIN))
JOBS: dict[str, Any] = WORKFLOW["jobs"]
BRANCH = "perfci-history"


class Merge:
    """The job ``merge`` after its downloads: the nights of two machines, and what was stored."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.temporary = project.folder.parent / "runner"
        self.nights = self.temporary / "nights"
        self.nights.mkdir(parents=True)
        perfci = self.temporary / "perfci" / "bin" / "perfci"
        perfci.parent.mkdir(parents=True)
        perfci.write_text(f'#!/bin/sh\nexec {sys.executable} -m perfci "$@"\n')
        perfci.chmod(0o755)
        (self.temporary / "made-from").write_text("0123abcd\n")
        for number, environment in enumerate((HERE, THERE), 1):
            lines = to_lines([recorded(number, environment)])
            (self.nights / f"history-{number}.jsonl").write_bytes(b"".join(lines))

    def record(self) -> subprocess.CompletedProcess[str]:
        return run_step(
            step(WORKFLOW, "Record and analyse")["run"],
            self.project.folder,
            RUNNER_TEMP=str(self.temporary),
            GITHUB_OUTPUT=str(self.temporary / "output"),
            GITHUB_STEP_SUMMARY=str(self.temporary / "summary"),
        )

    def environments(self) -> set[str]:
        """Return whose runs are in what the next job stores."""
        left = self.temporary / "history"
        assert (left / "made-from").read_text() == "0123abcd\n"
        assert (self.temporary / "output").read_text() == "exported=true\n"
        lines = (left / "history.jsonl").read_bytes().splitlines()
        return {
            one.environment.key for one in from_lines(lines, "x") if isinstance(one, RecordedRun)
        }


@pytest.fixture
def merge(project: Project) -> Merge:
    project.commit("first")
    return Merge(project)


def test_the_nights_of_all_machines_are_joined_and_analysed(merge: Merge) -> None:
    done = merge.record()
    assert done.returncode == 0, done.stderr
    assert merge.environments() == {HERE.key, THERE.key}
    assert (merge.temporary / "trend" / "site" / "index.html").exists()
    assert (merge.temporary / "summary").stat().st_size > 0


def test_an_analysis_that_fails_keeps_no_night_back(merge: Merge) -> None:
    (merge.temporary / "trend").write_text("a file where the site should be")
    done = merge.record()
    assert done.returncode != 0
    assert "perfci: " in done.stderr
    assert merge.environments() == {HERE.key, THERE.key}


def test_a_night_that_cannot_be_read_keeps_the_others_not_back(merge: Merge) -> None:
    whole = (merge.nights / "history-1.jsonl").read_bytes()
    (merge.nights / "history-1.jsonl").write_bytes(whole[:-20])
    done = merge.record()
    assert done.returncode == 4, done.stderr
    assert THERE.key in merge.environments()
    assert (merge.temporary / "trend" / "site" / "index.html").exists()


def test_what_was_exported_is_uploaded_and_stored_whatever_the_job_ended_with() -> None:
    uploads = [one for one in JOBS["merge"]["steps"] if "upload-artifact" in one.get("uses", "")]
    assert {one["with"]["name"]: one["if"] for one in uploads} == {
        "perfci-trend": "${{ !cancelled() }}",
        "perfci-history": "${{ !cancelled() }}",
    }
    assert JOBS["merge"]["outputs"] == {"exported": "${{ steps.record.outputs.exported }}"}
    exported = "needs.merge.outputs.exported == 'true'"
    assert JOBS["store"]["if"] == f"${{{{ !cancelled() && {exported} }}}}"


class Stored(Remote):
    """The server with the history's branch, and the job ``store``."""

    def tip(self) -> str:
        return self.git(self.bare, "rev-parse", f"refs/heads/{BRANCH}").strip()

    def stored(self) -> str:
        return self.git(self.bare, "show", f"{BRANCH}:history.jsonl")

    def put(self, text: str, made_from: str) -> subprocess.CompletedProcess[str]:
        """Run the step with ``text`` as the merged history, made from that commit."""
        number = len(list(self.folder.glob("job-*")))
        checkout, temporary = self.checkout(f"job-{number}"), self.folder / f"temp-{number}"
        (temporary / "merged").mkdir(parents=True)
        (temporary / "merged" / "history.jsonl").write_text(text)
        (temporary / "merged" / "made-from").write_text(f"{made_from}\n" if made_from else "")
        return self.push(WORKFLOW, checkout, temporary, HISTORY=BRANCH)


@pytest.fixture
def remote(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


def test_each_night_is_a_commit_after_the_one_that_it_was_made_from(remote: Stored) -> None:
    assert remote.put("one\n", "").returncode == 0
    first = remote.tip()
    done = remote.put("one\ntwo\n", first)
    assert done.returncode == 0, done.stderr
    assert remote.stored() == "one\ntwo\n"
    assert remote.git(remote.bare, "rev-parse", f"{BRANCH}^").strip() == first


def test_an_older_history_is_never_put_over_a_newer_one(remote: Stored) -> None:
    assert remote.put("one\n", "").returncode == 0
    first = remote.tip()
    assert remote.put("one\ntwo\n", first).returncode == 0
    second = remote.tip()
    for made_from in (first, ""):  # Monday's job run again on Wednesday; and the first night's
        done = remote.put("one\nof Monday\n", made_from)
        assert done.returncode == 1
        assert f"::error::the branch {BRANCH} is not what it was" in done.stdout
        assert "run the job 'merge' of this run again" in done.stdout
        assert "a-token" not in done.stdout + done.stderr
        assert remote.tip() == second
    assert remote.stored() == "one\ntwo\n"
