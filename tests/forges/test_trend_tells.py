"""``perfci trend``: a regression in a real history is told to all three, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

import pytest

from perfci.history.store import open_history
from perfci.model.run import Environment, Point, RecordedRun
from tests.builders.in_process import Done, in_process
from tests.builders.recorded import header
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub
from tests.forges.receiver import Answer, Receiver
from tests.lacking import needed

needed("apprise")
# of a library that one of apprise's services imports
pytestmark = pytest.mark.filterwarnings("ignore:.*imghdr:DeprecationWarning")

Trend = Callable[..., Done]
NIGHTS, STEP_AT = 40, 25


@pytest.fixture
def github(receiver: Receiver) -> Iterator[FakeGitHub]:
    """A GitHub, which is looked over at the end."""
    fake = FakeGitHub()
    yield fake
    fake.close()
    assert fake.violations == []


@pytest.fixture
def trend(
    tmp_path: Path, github: FakeGitHub, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> Trend:
    """Run the command beside a history of 40 nights with one step of 10 %."""
    noise = random.Random(5)
    with open_history(str(tmp_path / "history.sqlite")) as history:
        history.record([measured(number, noise) for number in range(NIGHTS)])
    told = {
        "PERFCI_NOTIFY": receiver.url,
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": REPOSITORY,
    }
    unwanted = {"GITHUB_SERVER_URL", "GITHUB_RUN_ID"}
    environment = {key: value for key, value in os.environ.items() if key not in unwanted} | told

    def run(*arguments: str, printed: IO[str] | None = None) -> Done:
        command = ("trend", "--history", "history.sqlite", *arguments)
        if printed is None:
            done = in_process(command, tmp_path, environment).without_traceback()
        else:
            ended = subprocess.run(
                [sys.executable, "-m", "perfci", *command],
                check=False,
                cwd=tmp_path,
                env=environment,
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
                timeout=120,
            )
            done = Done(ended.returncode, "", ended.stderr).without_traceback()
        assert "SeCrEt" not in done.text
        assert TOKEN not in done.text
        return done

    return run


def measured(number: int, noise: random.Random) -> RecordedRun:
    seconds = noise.gauss(1e-3, 3e-6) * (1.1 if number >= STEP_AT else 1.0)
    point = Point("encoder", "latency_p50", "s", seconds)
    environment = Environment("linux-cpu-aa", {"cpu": "EPYC"})
    return RecordedRun(**asdict(header(number)), environment=environment, points=(point,))


def test_a_new_regression_is_told_once_to_each(
    trend: Trend, github: FakeGitHub, receiver: Receiver
) -> None:
    for _ in range(2):
        done = trend("--github-issue")
        assert done.code == 0, done.text
    (issue,) = github.issues
    assert issue["title"].startswith("perfci: encoder latency_p50 got worse by +")
    assert f"{STEP_AT - 1:040x}" in issue["body"]
    assert f"{STEP_AT:040x}" in issue["body"]
    assert len(receiver.bodies) == 1
    assert b"1 new regression" in receiver.bodies[0]


def test_what_could_not_be_told_is_told_by_the_next_report(
    trend: Trend, github: FakeGitHub, receiver: Receiver
) -> None:
    receiver.answers = [Answer(404)]
    failed = trend("--github-issue")
    assert failed.code == 4
    assert "JSON took no message" in failed.err
    assert trend("--github-issue").code == 0
    assert (len(github.issues), len(receiver.bodies)) == (1, 2)


def test_what_cannot_be_told_is_said_before_the_history_is_read(trend: Trend) -> None:
    done = trend("--github-issue", "--repository", "octo", "--history", "missing.sqlite")
    assert done.code == 2
    assert "'octo' is no repository" in done.err
