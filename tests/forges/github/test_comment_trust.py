"""What ``perfci comment`` makes of a report whose word can't be taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.model.report import Accepted
from perfci.verdict.row_status import adjust
from tests.builders.project import Project
from tests.forges.github.conftest import HEAD, OLDER, PASSING, Comment
from tests.forges.github.server import FakeGitHub
from tests.report.examples import bare
from tests.verdict.shards import POLICY, paired

LENIENT = '[tool.perfci.metrics.latency_p50]\nundecided = "pass"\n'


@pytest.mark.parametrize(
    ("arguments", "configured", "expected", "code"),
    [
        ((), "", "neutral", 0),
        (("--strict",), "", "failure", 3),
        ((), "[tool.perfci]\nstrict = true\n", "failure", 3),
        (("--strict",), LENIENT, "success", 0),
    ],
)
def test_a_pass_is_held_to_the_policy_of_the_checkout_that_it_runs_in(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    report_file: Callable[..., Path],
    arguments: tuple[str, ...],
    configured: str,
    expected: str,
    code: int,
) -> None:
    project.write("pyproject.toml", configured)
    unsure = adjust([paired("a", 1.03, noise=30.0)], POLICY)
    assert [row.status for row in unsure] == ["inconclusive"]
    done = comment(report_file(**PASSING | {"results": unsure}), *arguments, "--exit-with-verdict")
    assert done.code == code, done.text
    (check,) = github.checks
    assert check["conclusion"] == expected
    said = "pass: no regression" if expected == "success" else "inconclusive: "
    assert check["output"]["title"].startswith(said)
    assert ("### ✅ perfci: no regression" in github.comments[0]["body"]) == (expected == "success")


@pytest.mark.parametrize(
    ("configured", "expected"),
    [("", "neutral"), ('[tool.perfci]\ninstalled = ["tinylib"]\n', "success")],
)
def test_a_pass_over_one_installed_copy_needs_the_word_of_the_default_branch(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    report_file: Callable[..., Path],
    configured: str,
    expected: str,
) -> None:
    project.write("pyproject.toml", configured)
    assert comment(report_file(**PASSING | {"installed": ("tinylib",)})).code == 0
    (check,) = github.checks
    assert check["conclusion"] == expected
    said = "both sides ran one installed copy of tinylib"
    assert (said in check["output"]["title"]) == (expected == "neutral")


def test_a_removed_case_is_told_in_the_title_of_a_pass(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path]
) -> None:
    rows = (*PASSING["results"], bare("sampler", "removed", "head hasn't got it"))
    assert comment(report_file(**PASSING | {"results": rows})).code == 0
    (check,) = github.checks
    assert check["conclusion"] == "success"
    assert check["output"]["title"] == (
        "pass: no regression in 2 cases; 1 removed case, 1 skipped case (#7 into main)"
    )


def test_a_benchmark_of_the_default_branch_that_the_report_lacks_is_told_in_the_title(
    comment: Comment, github: FakeGitHub, project: Project, report_file: Callable[..., Path]
) -> None:
    project.write(
        "benchmarks/bench_slow.py",
        "import perfci\n\n\n@perfci.benchmark\ndef slow():\n    return lambda: None\n\n\n"
        "if perfci.on_gpu:\n\n    @perfci.benchmark\n    def sparse():\n        return None\n",
    )
    assert comment(report_file(**PASSING)).code == 0
    (check,) = github.checks
    assert check["conclusion"] == "success"
    assert check["output"]["title"] == (
        "pass: no regression in 2 cases; 1 removed case, 1 skipped case (#7 into main)"
    )
    said = "the default branch has this benchmark, and the report does not"
    assert said in github.comments[0]["body"]


def test_the_page_is_of_the_rows_as_they_were_judged_and_is_linked(
    comment: Comment, github: FakeGitHub, tmp_path: Path, report_file: Callable[..., Path]
) -> None:
    page, address = tmp_path / "page" / "perfci.html", "https://github.com/acme/x/actions/runs/1"
    report = report_file(**PASSING | {"installed": ("tinylib",)})
    assert comment(report, "--page", page, "--details", address).code == 0
    assert f"]({address})" in github.comments[0]["body"]
    assert "both sides ran one installed copy of tinylib" in page.read_text(encoding="utf-8")
    refused = comment(report, "--details", "https://x/) @all")
    assert (refused.code, refused.err.rstrip().endswith("[bad-address]")) == (2, True)


@pytest.fixture
def damaged(tmp_path: Path, report_file: Callable[..., Path]) -> Path:
    """The second half of a disk that was full."""
    path = tmp_path / "bad.json"
    text = report_file(name="whole.json").read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    return path


def test_a_damaged_report_is_never_posted(
    comment: Comment, github: FakeGitHub, damaged: Path, report_file: Callable[..., Path]
) -> None:
    done = comment(report_file(), damaged)
    assert done.code == 4
    assert "bad.json" in done.err
    assert github.comments == []


def test_a_damaged_report_leaves_no_earlier_success_on_its_commit(
    comment: Comment, github: FakeGitHub, damaged: Path, report_file: Callable[..., Path]
) -> None:
    assert comment(report_file(**PASSING)).code == 0
    done = comment(damaged)
    assert done.code == 4
    assert "check is failure" in done.out
    assert done.err.rstrip().endswith("[damaged-file]")
    assert len(github.comments) == 1
    assert [one["conclusion"] for one in github.checks] == ["success", "failure"]
    newest = github.checks[-1]
    assert newest["head_sha"] == HEAD
    assert newest["output"]["title"].startswith("error: ")
    assert "bad.json" in newest["output"]["summary"]


@pytest.mark.parametrize("name", ["@someone <b>", "`](http://x) #1", "::error::"])
def test_what_a_strangers_file_is_called_by_is_text_in_the_check(
    comment: Comment, github: FakeGitHub, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"schema": name}))
    assert comment(path).code == 4
    summary = github.checks[0]["output"]["summary"]
    assert not any(one in summary for one in ("@someone", "<b>", "](http", "#1", "`"))


def test_a_damaged_report_sets_no_check_where_none_is_wanted_or_no_head_is_known(
    comment: Comment, github: FakeGitHub, tmp_path: Path, damaged: Path
) -> None:
    for arguments in (("--no-check",), ("--pull", "7")):
        assert comment(damaged, *arguments).code == 4
    push = tmp_path / "push.json"
    push.write_text('{"ref": "refs/heads/main"}')
    assert comment(damaged, GITHUB_EVENT_PATH=str(push)).code == 4
    github.pulls[7].sha = OLDER
    assert "newer head" in comment(damaged).err
    assert github.wrote() == []


def test_what_a_step_could_not_take_fails_the_check_and_says_why(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path]
) -> None:
    assert comment(report_file(**PASSING)).code == 0
    done = comment("--unreadable", "the artifact holds a <link>")
    assert done.code == 4
    assert done.err.rstrip().endswith("[unreadable]")
    assert [one["conclusion"] for one in github.checks] == ["success", "failure"]
    newest = github.checks[-1]
    assert newest["head_sha"] == HEAD
    assert newest["output"]["title"] == ("error: the artifact holds a <link> (#7 into main)")
    assert "<link>" not in newest["output"]["summary"]
    assert len(github.comments) == 1


@pytest.mark.parametrize("why", [(), ("--unreadable", "damaged")])
def test_either_reports_are_given_or_why_there_are_none(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path], why: tuple[str, ...]
) -> None:
    done = comment(*why, *([report_file()] if why else []))
    assert done.code == 2
    assert done.err.rstrip().endswith("[no-report]")
    assert github.requests == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [("Octo/Models", "success"), ("stranger/models", "failure"), ("", "failure")],
)
def test_only_a_branch_of_the_repository_itself_may_accept(
    comment: Comment,
    github: FakeGitHub,
    tmp_path: Path,
    report_file: Callable[..., Path],
    source: str,
    expected: str,
) -> None:
    """Of a head whose repository the event doesn't say nobody is believed."""
    (slower,) = adjust([paired("a", 1.3)], POLICY)
    said = Accepted("meant | `to` be\n### so", "Ada @octo")
    rows = (*PASSING["results"], replace(slower, accepted=said))
    owner = {"login": "octo"}
    repo = {"repo": {"full_name": source, "owner": owner}} if source else {}
    event = tmp_path / "pull.json"
    event.write_text(
        json.dumps(
            {
                "pull_request": {"number": 7, "head": {"sha": HEAD, **repo}},
                "repository": {"full_name": "octo/models", "owner": owner},
            }
        )
    )
    done = comment(report_file(**PASSING | {"results": rows}), "--event", event)
    assert done.code == 0, done.text
    (check,) = github.checks
    assert check["conclusion"] == expected
    body = github.comments[0]["body"]
    assert ("accepted by Ada" in body) == (expected == "success")
    assert "\n### so" not in body
    assert "Ada @octo" not in body
    assert ("Intended? Accept it" in body) == (expected == "failure")
