"""Whom ``perfci trend`` notifies, in which order, and what it refuses before it starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from perfci.cli.printing import say
from perfci.cli.trend import notification_options, notifications_of
from perfci.commands.notifications import Notifications
from perfci.errors import OutsideError, UsageError
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub
from tests.forges.receiver import DROPPED, Answer, Receiver
from tests.forges.trends import change, trend


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> Iterator[FakeGitHub]:
    """A GitHub that the environment names, with a token, outside Actions."""
    fake = FakeGitHub()
    for name in ("GITHUB_SERVER_URL", "GITHUB_RUN_ID", "PERFCI_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_API_URL", fake.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    yield fake
    fake.close()
    assert fake.violations == []


def notifications(*arguments: str) -> Notifications:
    """Return whom a command line asks to be notified."""
    found: list[Notifications] = []

    @click.command()
    @notification_options
    def command(**options: Any) -> None:
        found.append(notifications_of(**options))

    command.main(list(arguments), standalone_mode=False)
    return found[0]


def test_all_three_are_told_of_a_new_regression(
    github: FakeGitHub, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "perfci.prom"
    one = notifications("--openmetrics", str(file), "--webhook", receiver.url, "--github-issue")
    one.check()
    assert not file.exists()
    one.send(trend(), say)
    assert "perfci_latency_p50_seconds" in file.read_text()
    assert len(github.issues) == 1
    assert json.loads(receiver.bodies[0])["text"].startswith("perfci: 1 new regression")
    said = capsys.readouterr()
    assert "issue opened: " in said.out
    assert "SeCrEt" not in said.out + said.err


def test_a_file_that_is_there_keeps_its_rights(github: FakeGitHub, tmp_path: Path) -> None:
    file = tmp_path / "perfci.prom"
    file.write_text("old")
    file.chmod(0o640)
    notifications("--openmetrics", str(file)).send(trend(), say)
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.read_text() != "old"


def test_without_options_nobody_is_told_and_no_token_is_needed(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    one = notifications()
    one.check()
    one.check(remember=False)
    one.send(trend(), say)
    assert (github.requests, receiver.bodies) == ([], [])


def test_the_webhook_is_taken_from_the_environment(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFCI_WEBHOOK", f" {receiver.url}\n")
    notifications().send(trend(), say)
    assert len(receiver.bodies) == 1


def test_nothing_new_is_no_message(github: FakeGitHub, receiver: Receiver) -> None:
    notifications("--webhook", receiver.url).send(trend(changes=(change(status="known"),)), say)
    assert receiver.bodies == []


def test_a_run_of_actions_is_linked(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_RUN_ID", "12")
    notifications("--webhook", receiver.url, "--github-issue").send(trend(), say)
    address = f"https://github.com/{REPOSITORY}/actions/runs/12"
    assert f"<{address}|The whole report>".encode() in receiver.bodies[0]
    assert f"[The whole report]({address})" in github.issues[0]["body"]


def test_where_issues_fail_the_webhook_is_not_sent_so_that_the_next_report_tells_both(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = notifications("--webhook", receiver.url, "--github-issue", "--patience", "1s")
    with monkeypatch.context() as patched:
        patched.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
        with pytest.raises(OutsideError):
            one.send(trend(), say)
    assert receiver.bodies == []
    one.send(trend(), say)
    assert (len(github.issues), len(receiver.bodies)) == (1, 1)


def test_where_the_webhook_fails_the_next_report_opens_no_second_issue(
    github: FakeGitHub, receiver: Receiver
) -> None:
    receiver.answers = [Answer(404)]
    one = notifications("--webhook", receiver.url, "--github-issue")
    with pytest.raises(OutsideError, match="answered 404"):
        one.send(trend(), say)
    one.send(trend(), say)
    assert (len(github.issues), len(receiver.bodies)) == (1, 2)


def test_a_message_that_may_have_arrived_is_a_warning(
    github: FakeGitHub, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.answers = [Answer(DROPPED)]
    notifications("--webhook", receiver.url).send(trend(), say)
    assert "gave no answer" in capsys.readouterr().err


def test_a_missing_right_is_a_warning(
    github: FakeGitHub, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    github.rights.discard("issues")
    notifications("--github-issue").send(trend(), say)
    assert "the token may not: POST" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["--webhook", "hooks.example/SeCrEt"], "bad-webhook"),
        (["--report-url", "javascript:alert(1)"], "bad-address"),
        (["--report-url", "https://a.example/x) [b](https://c"], "bad-address"),
        (["--github-issue", "--repository", "octo"], "no-repository"),
    ],
)
def test_what_could_not_be_told_is_refused_at_once(
    github: FakeGitHub, arguments: list[str], slug: str
) -> None:
    with pytest.raises(UsageError) as caught:
        notifications(*arguments).check()
    assert caught.value.slug == slug
    assert "SeCrEt" not in str(caught.value)


def test_issues_without_a_token_are_refused_at_once(
    github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    with pytest.raises(UsageError, match="GITHUB_TOKEN is not set") as caught:
        notifications("--github-issue").check()
    assert "issues: write" in caught.value.advice


@pytest.mark.parametrize("option", [["--github-issue"], ["--webhook", "https://a.example/x"]])
def test_what_is_not_remembered_is_not_told_either(github: FakeGitHub, option: list[str]) -> None:
    with pytest.raises(UsageError, match="--no-remember"):
        notifications(*option).check(remember=False)


def test_a_file_that_cannot_be_written_is_told_at_once(github: FakeGitHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutsideError, match="can't be written"):
        notifications("--openmetrics", str(tmp_path / "file" / "perfci.prom")).check()
