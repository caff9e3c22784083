"""The corpus: a kept session is replayed to its own verdict, and a part of the corpus is scored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.corpus import score
from benchmarks.corpus.replay import Replay, replayed
from benchmarks.corpus.score import Outcome
from benchmarks.corpus.sessions import DATA, read_kept, recorded_sessions
from perfci.measure.kept_bursts import KeptSession
from perfci.verdict.policy import Policy
from tests.builders.project import Project
from tests.builders.simulated import Simulated


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> KeptSession:
    """Return a session whose head is 20 % slower in one case of two."""
    project = Project(tmp_path_factory.mktemp("corpus") / "project", Simulated(spread=0.003))
    project.counting(1000)
    base = project.commit("base")
    project.counting(1210)
    project.commit("slower")
    settings = (project.folder / "pyproject.toml").read_text()
    project.write("pyproject.toml", settings.replace("max_rounds = 9", "max_rounds = 20"))
    project.report("compare", base, "--all", "--keep-bursts", "kept", code=1)
    (path,) = (project.folder / "kept").iterdir()
    return read_kept(path)


def replay_of(session: KeptSession, name: str) -> Replay:
    (at,) = (at for at, case in enumerate(session.cases) if case.id == name)
    return replayed(session, at, Policy())


def test_a_replay_decides_what_the_session_would_have_and_stops_where_it_would(
    session: KeptSession,
) -> None:
    slower, steady = replay_of(session, "counting"), replay_of(session, "steady")
    assert (slower.verdict, steady.verdict) == ("fail", "pass")
    assert steady.rounds == 5
    # as one of twenty cases a change isn't believed before the eighth round
    assert slower.rounds == 8
    assert steady.seconds < slower.seconds


def outcome(**changed: object) -> Outcome:
    made = {
        "kind": "tiny", "load": "below 2", "share": 0.0, "truth": 0.0, "policy": "5 %",
        "metric": "latency_p50", "threshold": 0.05, "verdict": "pass", "status": "unchanged",
        "covered": True, "rounds": 5, "seconds": 6.0,
    }  # fmt: skip
    return Outcome(**{**made, **changed})


def test_what_is_false_depends_on_what_was_planted() -> None:
    assert outcome(verdict="fail").is_false_fail
    assert outcome(verdict="fail", truth=0.02).is_false_fail
    assert not outcome(verdict="fail", truth=0.05).is_false_fail
    assert outcome(truth=0.05).is_false_pass
    assert not outcome(truth=0.02).is_false_pass
    assert not outcome(truth=0.10, status="regressed").is_false_pass  # a warning says so
    assert not outcome(truth=0.10, verdict="inconclusive").is_false_pass


def test_a_part_of_the_corpus_is_scored_and_holds_no_false_fail() -> None:
    outcomes = score.all_outcomes(DATA, most=2)
    assert outcomes
    assert [each for each in outcomes if each.is_false_fail] == []
    assert "| all |" in score.tables(("here", outcomes))


def test_the_index_names_each_file_and_what_it_holds() -> None:
    recorded = recorded_sessions()
    assert {each.file for each in recorded} == {path.name for path in DATA.glob("*.bursts")}
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 15 << 20


def test_the_rules_of_another_checkout_decide_in_a_process_of_their_own(tmp_path: Path) -> None:
    other, data = tmp_path / "other", tmp_path / "data"
    for part in ("perfci", "benchmarks/corpus"):
        ignored = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(score.ROOT / part, other / part, ignore=ignored)
    settings = other / "perfci" / "config" / "keys.py"
    settings.write_text(settings.read_text().replace("= DECIDING_ROUNDS\n", "= 7\n"))
    recorded = (DATA / "sessions.jsonl").read_text().splitlines()[0]
    data.mkdir()
    (data / "sessions.jsonl").write_text(recorded + "\n")
    shutil.copy(DATA / json.loads(recorded)["file"], data)
    here, there = score.all_outcomes(data, "tiny"), score.outcomes_by(other, data, "tiny")
    assert {each.rounds for each in here} == {5}
    assert {each.rounds for each in there} == {7}
