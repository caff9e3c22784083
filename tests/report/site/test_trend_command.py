"""``perfci trend`` on a real history and a real repository."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.history.store import open_history
from perfci.model.run import Environment, Point, RecordedRun
from tests.builders.project import Project

COMMITS, STEP_AT, TAGGED_AT = 40, 28, 11


class Recorded:
    """A repository of 40 commits with recorded runs; a step at the 29th, a tag at the 12th."""

    def __init__(self, project: Project, shas: Sequence[str]) -> None:
        self.project = project
        self.history = project.folder.parent / "history.sqlite"
        self.shas = shas

    @classmethod
    def made(cls, project: Project) -> Recorded:
        """Commit and record everything."""
        shas: list[str] = []
        for number in range(COMMITS):
            shas.append(project.commit(f"change {number}"))
            if number == TAGGED_AT:
                project.git("tag", "--annotate", "--message", "out", "v2.0")
        noise = random.Random(5)
        made = cls(project, tuple(shas))
        made.record(
            [
                (place, sha, "work", noise.gauss(1.0, 0.003) * (1.1 if place >= STEP_AT else 1.0))
                for place, sha in enumerate(shas)
                if place != TAGGED_AT
            ]
        )
        return made

    def record(self, points: Sequence[tuple[int, str, str, float]]) -> None:
        """Record a run for each (place, sha, case, latency in ms)."""
        runs = [
            RecordedRun(
                id=f"run-{place}-{case}",
                source="nightly",
                sha=sha,
                subject=f"change {place}",
                branch="main",
                committed_at=f"2026-0{1 + place // 28}-{1 + place % 28:02}T12:00:00+00:00",
                measured_at=f"2026-0{1 + place // 28}-{1 + place % 28:02}T23:00:00+00:00",
                position=place,
                environment=Environment("linux-cpu-aa", {"cpu": "EPYC"}),
                runner="runner-1",
                points=(
                    Point(case, "latency_p50", "s", ms / 1e3),
                    Point(case, "cold_start", "s", 0.5),
                ),
            )
            for place, sha, case, ms in points
        ]
        with open_history(str(self.history)) as history:
            history.record(runs)

    def trend(self, *arguments: str) -> dict[str, Any]:
        """Run the command in this process and return its JSON."""
        from perfci.cli.trend import trend_command

        path = self.project.folder.parent / "trend.json"
        given = ["--history", str(self.history), "--json", str(path), *arguments]
        trend_command.main(given, standalone_mode=False)
        return json.loads(path.read_bytes())


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Made once: 40 commits take a second."""
    return Recorded.made(Project(tmp_path_factory.mktemp("original") / "project"))


@pytest.fixture
def recorded(original: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    folder = tmp_path / "user"
    shutil.copytree(original.project.folder.parent, folder)
    monkeypatch.chdir(folder / "project")
    project = Project.__new__(Project)
    project.folder, project.cache = folder / "project", folder / "cache"
    return Recorded(project, original.shas)


def test_the_step_is_named_with_its_commits_and_written_everywhere(recorded: Recorded) -> None:
    folder = recorded.project.folder.parent
    done = recorded.project.perfci(
        *("trend", "--history", str(recorded.history), "--html", str(folder / "site")),
        *("--markdown", str(folder / "trend.md"), "--json", str(folder / "trend.json")),
    ).without_traceback()
    assert done.code == 0, done.text
    told = json.loads((folder / "trend.json").read_bytes())
    (change,) = told["changes"]
    assert (change["sha_before"], change["sha_after"]) == (
        recorded.shas[STEP_AT - 1],
        recorded.shas[STEP_AT],
    )
    assert (change["metric"], change["status"], change["worse"]) == ("latency_p50", "new", True)
    assert 1.08 < change["ratio"] < 1.12
    assert "latency_p50 of work got worse" in done.out
    assert change["id"] in done.out
    assert (folder / "trend.md").read_text().startswith("## latency_p50 of work got worse")
    assert "latency_p50 of work got worse" in (folder / "site" / "index.html").read_text()
    chunks = list((folder / "site" / "data").glob("work-*.0.js"))
    assert f'"id {change["id"]}"' in chunks[0].read_text()


def test_a_change_is_new_once_and_then_known_until_acknowledged(recorded: Recorded) -> None:
    assert [one["status"] for one in recorded.trend("--no-remember")["changes"]] == ["new"]
    first = recorded.trend()["changes"][0]
    assert first["status"] == "new"
    second = recorded.trend()["changes"][0]
    assert (second["id"], second["status"]) == (first["id"], "known")
    with open_history(str(recorded.history)) as history:
        history.acknowledge(first["id"], "meant")
    third = recorded.trend()["changes"][0]
    assert (third["status"], third["note"]) == ("acknowledged", "meant")


def test_a_change_that_newer_runs_undo_is_withdrawn_once_and_the_history_keeps_why(
    recorded: Recorded,
) -> None:
    assert len(recorded.trend()["changes"]) == 1
    with open_history(str(recorded.history)) as history:
        runs, known = tuple(history.recorded_runs()), history.known_changes()
    recorded.history = recorded.history.with_name("undone.sqlite")
    with open_history(str(recorded.history)) as history:
        history.remember(known)
        history.record(
            [
                replace(
                    run,
                    points=tuple(
                        point._replace(value=1e-3 * (1 + at % 5 / 500)) for point in run.points
                    ),
                )
                for at, run in enumerate(runs)
            ]
        )
    told = recorded.trend()
    assert "Withdrawn: work latency_p50, worse at" in told["notes"][0]
    with open_history(str(recorded.history)) as history:
        (known,) = history.known_changes()
    assert known.withdrawn
    assert not any("Withdrawn" in note for note in recorded.trend()["notes"])


def test_an_event_is_acknowledged_whole_by_its_id(recorded: Recorded) -> None:
    recorded.record(
        [
            (place, sha, case, size * (1.0 + 0.001 * (place % 4)))
            for place, sha in enumerate(recorded.shas)
            for case, size in (("one", 1.0 + 0.2 * (place >= STEP_AT)), ("two", 3.0))
        ]
    )
    (event,) = recorded.trend()["events"]
    assert (event["status"], event["series"], event["measured"]) == ("new", 2, 6)
    assert event["benchmarks"] == ["one", "work"]
    (again,) = recorded.trend()["events"]
    assert (again["id"], again["status"]) == (event["id"], "known")

    recorded.project.perfci(
        "history", "acknowledge", event["id"], "--note", "ok", "--history", str(recorded.history)
    )

    told = recorded.trend()
    assert [one["status"] for one in told["events"]] == ["acknowledged"]
    assert {(one["status"], one["note"]) for one in told["changes"]} == {("acknowledged", "ok")}


def test_what_people_decide_is_in_every_report_with_its_reason(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded.project.git("remote", "add", "origin", "https://github.com/octo/models")
    with closing(sqlite3.connect(recorded.history)) as connection, connection:
        connection.execute("UPDATE perfci_runs SET subject = subject || ' (#12)'")
    (first,) = recorded.trend()["events"]
    assert first["bisect"].startswith(f"perfci bisect {recorded.shas[STEP_AT - 1][:10]}..")
    assert " -k work --metric latency_p50 --size 1" in first["bisect"]
    assert first["pull_request"] == "https://github.com/octo/models/pull/12"
    site = tmp_path / "site"
    recorded.trend("--html", str(site))
    page = (site / "index.html").read_text()
    assert f"<code>{first['bisect']}</code>" in page
    assert '<a href="https://github.com/octo/models/pull/12" rel="noopener">#12</a>' in page

    with open_history(str(recorded.history)) as history:
        assert history.acknowledge(first["id"][:6], "The safer way.") == first["id"]
    markdown = tmp_path / "trend.md"
    told = recorded.trend("--markdown", str(markdown), "--html", str(site))
    (change,) = told["changes"]
    assert (change["status"], change["note"]) == ("acknowledged", "The safer way.")
    assert "The safer way." in (site / "index.html").read_text()
    assert "The safer way." in markdown.read_text()


def test_a_first_report_calls_new_only_what_moved_of_late(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recorded.trend("--set", "trend.drift_days=5")["changes"][0]["status"] == "known"
    told = capsys.readouterr().out
    assert "1 regression is open, none of them new in the last 5 days" in told
    assert "Still worse:" in told
    assert "since the last report" not in told


def test_what_could_not_be_written_was_not_told(recorded: Recorded, tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="can't be written"):
        recorded.trend("--html", "/proc/site")
    assert recorded.trend()["changes"][0]["status"] == "new"


def test_commits_that_a_force_push_took_away_are_a_note(recorded: Recorded) -> None:
    recorded.project.git("reset", "--quiet", "--hard", "HEAD~3")
    recorded.project.commit("instead")
    told = recorded.trend()
    assert told["environments"][0]["vanished"] == list(recorded.shas[-3:])
    assert told["environments"][0]["runs"] == COMMITS - 1 - 3
    assert any("3 commits" in note and "force-push" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("depth", "note"), [("1", "shallow clone"), (None, "None of the recorded commits")]
)
def test_a_clone_that_lacks_the_commits_does_not_make_them_vanish(
    recorded: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    depth: str | None,
    note: str,
) -> None:
    clone = tmp_path / "clone"
    if depth:
        source = recorded.project.folder.as_uri()
        subprocess.run(["git", "clone", "--quiet", "--depth", depth, source, clone], check=True)
    else:
        Project(clone).commit("another project")
    monkeypatch.chdir(clone)
    told = recorded.trend()
    assert told["environments"][0]["runs"] == COMMITS - 1
    assert any(note in one for one in told["notes"])


def test_a_branch_without_recorded_commits_shows_no_run_of_another(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Project(tmp_path / "other")
    other.commit("another project")
    other.git("branch", "--move", "other")
    monkeypatch.chdir(other.folder)
    told = recorded.trend()
    assert told["environments"][0]["runs"] == 0
    assert any("of other branches left out: main" in note for note in told["notes"])


def test_a_branch_that_only_the_remote_has_is_found(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    source = recorded.project.folder.as_uri()
    subprocess.run(["git", "clone", "--quiet", source, clone], check=True)
    for arguments in (["checkout", "--quiet", "--detach"], ["branch", "--quiet", "-D", "main"]):
        subprocess.run(["git", *arguments], cwd=clone, check=True)
    monkeypatch.chdir(clone)
    assert recorded.trend("--branch", "main")["releases"] != {}


def test_a_renamed_benchmarks_change_keeps_its_id_and_its_acknowledgement(
    recorded: Recorded,
) -> None:
    (first,) = recorded.trend()["changes"]
    with open_history(str(recorded.history)) as history:
        history.acknowledge(first["id"], "meant")
    recorded.project.write("perfci.toml", '[aliases]\nwork = "labour"\n')
    told = recorded.trend()
    (change,) = told["changes"]
    assert (change["case"], change["id"]) == ("labour", first["id"])
    assert (change["status"], change["note"]) == ("acknowledged", "meant")
    assert not any("no longer seen" in note for note in told["notes"])
    with open_history(str(recorded.history)) as history:
        (known,) = history.known_changes()
    assert (known.id, known.series.case, known.acknowledged) == (first["id"], "labour", True)


def test_what_counts_as_a_change_is_configured(recorded: Recorded) -> None:
    recorded.project.write("perfci.toml", "[trend]\nfloor = 0.5\ndrift_days = 300\n")
    told = recorded.trend()
    assert told["changes"] == []


def test_what_a_removed_benchmark_was_left_with_stays_open(recorded: Recorded) -> None:
    (first,) = recorded.trend()["changes"]
    recorded.record([(41 + day, recorded.shas[-1], "other", 1.0) for day in range(14)])
    told = recorded.trend()
    (change,) = told["changes"]
    assert (change["id"], change["status"]) == (first["id"], "known")


def test_a_history_that_is_not_there_is_not_made(recorded: Recorded, tmp_path: Path) -> None:
    recorded.history = tmp_path / "mistyped.sqlite"
    with pytest.raises(UsageError, match="mistyped"):
        recorded.trend()
    assert not recorded.history.exists()


def test_an_empty_history_says_so(recorded: Recorded, tmp_path: Path) -> None:
    recorded.history = tmp_path / "empty.sqlite"
    with open_history(str(recorded.history)):
        pass
    told = recorded.trend("--html", str(tmp_path / "site"))
    assert told["series"] == []
    assert "Nothing is recorded yet" in (tmp_path / "site" / "index.html").read_text()


def test_one_series_beyond_all_computing_takes_no_report_with_it(recorded: Recorded) -> None:
    wild = [(place, sha, "wild", 1e-300) for place, sha in enumerate(recorded.shas[:25])]
    wild += [(25 + place, sha, "wild", 1e300) for place, sha in enumerate(recorded.shas[25:])]
    recorded.record(wild)
    folder = recorded.project.folder.parent
    done = recorded.project.perfci(
        *("trend", "--history", str(recorded.history), "--html", str(folder / "site")),
        *("--json", str(folder / "trend.json")),
    ).without_traceback()
    assert (done.code, "Warning" in done.err) == (0, False), done.text
    told = json.loads((folder / "trend.json").read_bytes())
    assert [change["case"] for change in told["changes"]] == ["work"]
    assert any("wild latency_p50: values beyond" in note for note in told["notes"])
