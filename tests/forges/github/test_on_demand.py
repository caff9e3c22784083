"""`/perfci -k EXPR`: who may have a pull request measured, which commit it is, and the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.forges.comment_commands import MeasureRequest, UnreadableCommand, read_commands
from perfci.forges.http import RetryPolicy
from tests.builders.project import Done, Project
from tests.forges.github.conftest import BASE, FORK, HEAD, OLDER, PASSING, Comment
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub, Fault, Pull

ASK = '/perfci -k "encoder and not slow"'
RUN = "https://github.com/octo/models/actions/runs/12"
Report = Callable[..., Path]


class Asking:
    """A pull request of a fork, on which one comments."""

    def __init__(self, project: Project, github: FakeGitHub, folder: Path) -> None:
        self.project, self.github, self.folder = project, github, folder
        github.pulls[7] = Pull(7, HEAD, source=FORK)
        github.members |= {"Ada": "admin", "Ben": "write", "Cleo": "read"}
        self.output = folder / "output"

    def __call__(
        self, body: str = ASK, who: str | None = "Ada", token: str = TOKEN, **event: Any
    ) -> Done:
        comment = self.github.comment(body, who)
        issue = {"number": 7, "pull_request": {"url": "https://api.github.com/pulls/7"}}
        whole = {"action": "created", "issue": issue, "comment": comment} | event
        file = self.folder / "event.json"
        file.write_text(json.dumps(whole))
        self.output.write_text("")
        step = {
            "GITHUB_TOKEN": token,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "12",
        }
        done = self.project.perfci("on-demand", **step)
        assert TOKEN not in done.text
        return done.without_traceback()

    def outputs(self) -> Mapping[str, str]:
        """Return the step's outputs, read as a runner reads them."""
        lines = self.output.read_text().splitlines()
        found = {}
        while lines:
            name, delimiter = lines.pop(0).split("<<")
            end = lines.index(delimiter)
            found[name] = "\n".join(lines[:end])
            del lines[: end + 1]
        return found

    def nothing(self) -> bool:
        """Say whether nothing was set, and nobody answered."""
        return not self.outputs() and not self.github.wrote()


@pytest.fixture
def asking(project: Project, github: FakeGitHub, tmp_path: Path) -> Asking:
    return Asking(project, github, tmp_path)


@pytest.mark.parametrize("who", ["Ada", "Ben"])
def test_who_may_write_has_the_head_measured_as_it_was(
    asking: Asking, github: FakeGitHub, who: str
) -> None:
    done = asking(who=who)
    assert done.code == 0, done.text
    asked, answer = github.comments
    assert asking.outputs() == {
        "number": "7",
        "comment": str(asked["id"]),
        "base": BASE,
        "head": HEAD,
        "selection": "encoder and not slow",
    }
    assert github.reactions == [(asked["id"], "eyes")]
    assert answer["body"].startswith(f"<!-- perfci on demand {asked['id']} -->\n")
    assert f"[the run]({RUN})" in answer["body"]
    assert "-k encoder and not slow" in answer["body"]


def test_without_a_selection_all_cases_are_measured(asking: Asking, github: FakeGitHub) -> None:
    done = asking("/perfci")
    assert done.code == 0, done.text
    assert (asking.outputs()["head"], asking.outputs()["selection"]) == (HEAD, "")
    assert "-k" not in github.comments[-1]["body"]


def test_a_step_that_is_run_again_answers_once(asking: Asking, github: FakeGitHub) -> None:
    asking()
    event = json.loads((asking.folder / "event.json").read_text())
    github.comments = [one for one in github.comments if one["id"] != event["comment"]["id"]]
    again = asking(comment=event["comment"])
    assert "the comment was deleted" in again.err
    github.comments.append(event["comment"])
    assert asking(comment=event["comment"]).code == 0
    assert asking.outputs()["head"] == HEAD
    assert sum("on demand" in one["body"] for one in github.comments) == 1


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("Cleo", "only somebody with write access"),
        ("nobody", "only somebody with write access"),
        ("stranger", "only somebody with write access"),
        ("..", "only somebody with write access"),
        ("a[bot]", "only a person"),
        (None, "only a person"),
    ],
)
def test_of_anybody_else_nothing_is_measured_and_nothing_said(
    asking: Asking, who: str | None, said: str
) -> None:
    done = asking(who=who)
    assert done.code == 0, done.text
    assert said in done.err
    assert not done.out
    assert asking.nothing()


def test_of_a_stranger_a_misread_command_is_not_answered_either(asking: Asking) -> None:
    assert "has nothing measured" in asking("/perfci -k $(id) `x`", "stranger").err
    assert asking.nothing()


@pytest.mark.parametrize(
    "pushed", ["2026-03-05T00:00:00Z", "", "soon", "2026-03-04T00:16:42Z"], ids=repr
)
def test_a_fork_that_was_pushed_to_since_is_not_measured(
    asking: Asking, github: FakeGitHub, pushed: str
) -> None:
    github.pulls[7].pushed_at = pushed
    github.clock = lambda: "2026-03-04T00:16:42Z"  # type: ignore[method-assign]
    done = asking()
    assert "the fork was pushed to since" in done.err
    assert not asking.outputs()
    assert github.reactions == [(github.comments[0]["id"], "confused")]


def test_a_branch_of_the_repository_is_measured_whoever_pushes_elsewhere(
    asking: Asking, github: FakeGitHub
) -> None:
    github.pulls[7] = Pull(7, HEAD, source=REPOSITORY, pushed_at="2027-01-01T00:00:00Z")
    asking()
    assert asking.outputs()["head"] == HEAD


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"action": "edited"}, "isn't new"),
        ({"action": "deleted"}, "isn't new"),
        ({"issue": {"number": 7}}, "on no pull request"),
        ({"issue": {"number": 0, "pull_request": {}}}, "on no pull request"),
        ({"issue": None}, "no comment"),
        ({"comment": None}, "no comment"),
    ],
)
def test_another_event_asks_for_nothing(asking: Asking, event: dict[str, Any], said: str) -> None:
    done = asking(**event)
    assert done.code == 0, done.text
    assert said in done.err
    assert asking.nothing()
    assert asking.github.requests == []


@pytest.mark.parametrize("body", ["looks good", "> " + ASK, "/perfci accept a m because so", ""])
def test_another_comment_asks_for_nothing(asking: Asking, body: str) -> None:
    assert "doesn't ask for it" in asking(body).err
    assert asking.nothing()
    assert asking.github.requests == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/perfci -k", "it is neither"),
        ("/perfci measure", "it is neither"),
        ("/perfci -k a and", "can't be read at its end"),
        ("/perfci -k (a", "can't be read at its end"),
        ("/perfci -k a\n/perfci -k b", "join them by `or`"),
        ("/perfci -k a\u202e", "can't be seen"),
    ],
)
def test_a_maintainer_sees_that_a_command_was_not_understood(
    asking: Asking, body: str, said: str
) -> None:
    assert said in asking(body).err
    assert not asking.outputs()
    (reaction,) = asking.github.reactions
    assert reaction[1] == "confused"


def test_a_closed_pull_request_and_one_of_a_fork_that_is_gone(
    asking: Asking, github: FakeGitHub
) -> None:
    github.pulls[7].state = "closed"
    assert "is closed" in asking().err
    github.pulls[7] = Pull(7, OLDER, source=FORK)
    assert "no commit in common" in asking().err
    assert not asking.outputs()


def test_a_token_that_may_not_comment_measures_all_the_same(
    asking: Asking, github: FakeGitHub
) -> None:
    github.rights.remove("pull-requests")
    done = asking()
    assert done.code == 0, done.text
    assert "no reaction, because the token may not" in done.err
    assert "no answer, because the token may not" in done.err
    assert asking.outputs()["head"] == HEAD


def test_where_github_fails_nothing_is_measured(
    asking: Asking, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    unhurried = RetryPolicy(first_wait=0.0)
    monkeypatch.setattr("perfci.forges.rest.policy_of", lambda _: unhurried)
    github.faults.append(Fault("GET", "permission", status=500, times=99))
    done = asking()
    assert done.code == 4, done.text
    assert not asking.outputs()


@pytest.mark.parametrize(
    ("body", "selection"),
    [
        ("/perfci", ""),  # all cases
        ("/perfci  \nplease", ""),
        ("/perfci -k encoder", "encoder"),
        ("/perfci  -k  a[x=1] or (b and not c)", "a[x=1] or (b and not c)"),
        ("/perfci -k 'a b'\r\nthanks", "a b"),
        ("/perfci -k `lm`", "lm"),
        ("/perfci -k $(id);rm>x&|*", "$(id);rm>x&|*"),  # words; no shell reads them
        ("/perfci -k ${{ secrets.X }}", "${{ secrets.X }}"),
        ("/perfci -k --config=x", None),  # would be an option
        ("/perfci -k 'a", None),
        ("/perfci -k a'b", None),
        ('/perfci -k ""', None),
        ("/perfci -ka", None),
        ("/perfci -k " + "a" * 401, None),
    ],
)
def test_a_selection_is_read_strictly(body: str, selection: str | None) -> None:
    read = read_commands(body)
    if selection is None:
        assert isinstance(read, UnreadableCommand)
    else:
        assert read == (MeasureRequest(selection),)


@given(st.text(max_size=60).map("/perfci -k ".__add__))
def test_whatever_is_asked_for_a_selection_is_one_line_of_text(body: str) -> None:
    read = read_commands(body)
    for one in () if isinstance(read, UnreadableCommand) else read:
        assert isinstance(one, MeasureRequest)
        assert one.selection.isprintable()
        assert one.selection.strip(" ") == one.selection
        assert not {"'", '"', "`"} & set(one.selection)


def test_the_report_replaces_the_answer_and_touches_neither_check_nor_other_comment(
    asking: Asking, comment: Comment, github: FakeGitHub, report_file: Report
) -> None:
    github.comment("<!-- perfci -->\nthe whole report")
    asking.project.counting(1)  # two benchmarks that the report leaves out
    asking()
    github.comment("<!-- perfci on demand 1003 -->\nmine", "stranger")
    asked = asking.outputs()["comment"]
    github.pulls[7].sha = OLDER  # a push after it was asked for
    answer = ("--answer", asked, "--pull", 7, "--head-sha", HEAD)
    done = comment(report_file(**PASSING), *answer)
    assert done.code == 0, done.text
    bodies = [one["body"] for one in github.comments]
    assert bodies[0] == "<!-- perfci -->\nthe whole report"
    assert bodies[3].endswith("mine")
    assert bodies[2].startswith(f"<!-- perfci on demand {asked} -->\n<!-- perfci head={HEAD}")
    assert "<!-- perfci -->" not in bodies[2]
    assert f"/pull/7#issuecomment-{asked}). It sets no check." in bodies[2]
    assert "default branch has" not in bodies[2]
    assert len(bodies) == 4
    assert github.checks == github.statuses == []


def test_without_a_report_the_answer_says_so(
    asking: Asking, comment: Comment, github: FakeGitHub, tmp_path: Path
) -> None:
    asking()
    answer = ("--answer", asking.outputs()["comment"], "--pull", 7, "--head-sha", HEAD)
    done = comment("--unreadable", "no <b>report</b> @octo", *answer)
    assert done.code == 4, done.text
    body = github.comments[-1]["body"]
    assert "perfci: not measured" in body
    assert "<b>" not in body
    assert "@octo" not in body
    assert f"[the run]({RUN})" in body
    assert github.checks == []


def test_a_report_of_another_commit_is_no_answer(
    asking: Asking, comment: Comment, github: FakeGitHub, report_file: Report
) -> None:
    asking()
    before = github.comments[-1]["body"]
    answer = ("--answer", asking.outputs()["comment"], "--pull", 7, "--head-sha", HEAD)
    assert comment(report_file(OLDER, **PASSING), *answer).code == 2
    assert github.comments[-1]["body"] == before
    assert comment(report_file(**PASSING), "--answer", 5).code == 2


def test_a_demand_accepts_nothing_and_stops_no_acceptance(
    comment: Comment, github: FakeGitHub, report_file: Report
) -> None:
    github.members["Ada"] = "admin"
    github.comment("/perfci -k a", "Ada")
    done = comment(report_file())
    assert "isn't read" not in done.err
    assert "accepts nothing" not in done.err
