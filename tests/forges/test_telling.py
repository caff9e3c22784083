"""Whom ``perfci trend`` notifies, in which order, and what it refuses before it starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest

from perfci.cli.printing import say
from perfci.cli.trend import notification_options, notifications_of
from perfci.errors import OutsideError, UsageError
from perfci.forges.notifications import Notifications, send_news
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub
from tests.forges.receiver import Answer, Receiver
from tests.forges.trends import KEY, change, series, trend
from tests.lacking import needed

needed("apprise")
# of a library that one of apprise's services imports
pytestmark = pytest.mark.filterwarnings("ignore:.*imghdr:DeprecationWarning")


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> Iterator[FakeGitHub]:
    """A GitHub that the environment names, with a token, outside Actions."""
    fake = FakeGitHub()
    for name in ("GITHUB_SERVER_URL", "GITHUB_RUN_ID", "PERFCI_NOTIFY"):
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


def test_both_are_told_of_a_new_regression(
    github: FakeGitHub, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    one = notifications("--notify", receiver.url, "--github-issue")
    one.check()
    one.send(trend(), say)
    assert len(github.issues) == 1
    assert json.loads(receiver.bodies[0])["title"].startswith("perfci: 1 new regression")
    said = capsys.readouterr()
    assert "issue opened: " in said.out
    assert "SeCrEt" not in said.out + said.err


def test_without_options_nobody_is_told_and_no_token_is_needed(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    one = notifications()
    one.check()
    one.check(remember=False)
    one.send(trend(), say)
    assert (github.requests, receiver.bodies) == ([], [])


def test_addresses_are_taken_from_the_environment(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFCI_NOTIFY", f" {receiver.url} {receiver.url}?overflow=truncate\n")
    notifications().send(trend(), say)
    assert len(receiver.bodies) == 2


def test_where_issues_fail_no_message_is_sent_so_that_the_next_report_tells_both(
    github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = notifications("--notify", receiver.url, "--github-issue")
    with monkeypatch.context() as patched:
        patched.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
        patched.setattr("perfci.forges.github._TRIES", 1)
        with pytest.raises(OutsideError):
            one.send(trend(), say)
    assert receiver.bodies == []
    one.send(trend(), say)
    assert (len(github.issues), len(receiver.bodies)) == (1, 1)


def test_where_a_message_fails_the_next_report_opens_no_second_issue(
    github: FakeGitHub, receiver: Receiver
) -> None:
    receiver.answers = [Answer(404)]
    one = notifications("--notify", receiver.url, "--github-issue")
    with pytest.raises(OutsideError, match="JSON took no message"):
        one.send(trend(), say)
    one.send(trend(), say)
    assert (len(github.issues), len(receiver.bodies)) == (1, 2)


def test_a_missing_right_is_a_warning(
    github: FakeGitHub, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    github.rights.discard("issues")
    notifications("--github-issue").send(trend(), say)
    assert "the token may not: POST" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["--notify", "hooks.example/SeCrEt"], "bad-notify-address"),
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


@pytest.mark.parametrize("option", [["--github-issue"], ["--notify", "json://a.example/x"]])
def test_what_is_not_remembered_is_not_told_either(github: FakeGitHub, option: list[str]) -> None:
    with pytest.raises(UsageError, match="--no-remember"):
        notifications(*option).check(remember=False)


def test_names_in_a_message_stay_text(receiver: Receiver) -> None:
    one = "<!channel> @here https://a.example www.a.example #1 :bomb: \x1b[2J"
    hostile = change(key=KEY._replace(case=one), commits=("x", "y"))
    send_news([receiver.url], trend(series=(series(hostile.series),), changes=(hostile,)))
    text = json.loads(receiver.bodies[0])["message"]
    assert "channel" in text
    assert not [
        part for part in ("<!", "@here", "://", "www.", "#1", ":bomb:", "\x1b") if part in text
    ]


def test_one_address_that_fails_keeps_no_other_back_and_is_shown_nowhere(
    receiver: Receiver, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OutsideError, match="JSON took no message; JSON did") as caught:
        send_news(["json://127.0.0.1:9/SeCrEt", receiver.url], trend())
    assert len(receiver.bodies) == 1
    said = capfd.readouterr()
    assert "SeCrEt" not in f"{caught.value}{said.out}{said.err}"
