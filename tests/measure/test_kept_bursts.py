"""``--keep-bursts``: a session's file has all that its decisions were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpus.sessions import read_kept
from perfci.measure.kept_bursts import KeptSession
from perfci.model.worker import WorkOrder
from tests.builders.project import Project
from tests.builders.simulated import Simulated

SAME = ("compare", "HEAD", "HEAD", "--allow-same-commit")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", Simulated(spread=0.0005))
    project.counting(1000)
    project.commit("base")
    return project


def kept(project: Project, code: int = 0) -> KeptSession:
    project.report(*SAME, "--rounds", "6", "--keep-bursts", "kept", code=code)
    (path,) = (project.folder / "kept").iterdir()
    return read_kept(path)


def test_each_case_gets_all_rounds_although_it_is_decided_sooner(project: Project) -> None:
    session = kept(project)
    assert sorted(case.id for case in session.cases) == ["counting", "steady"]
    for at in range(2):
        rounds = [kept.round for kept in session.rounds if kept.case == at]
        assert rounds == list(range(1, session.settings.max_rounds + 1))


def test_a_round_that_failed_on_one_side_is_not_kept(tmp_path: Path) -> None:
    def ends(order: WorkOrder, number: int) -> tuple[str, str] | None:
        is_third = order.side == "head" and order.case == "steady" and number >= 3
        return ("crash", "it crashed") if is_third else None

    project = Project(tmp_path / "project", Simulated(spread=0.0005, before=ends))
    project.counting(1000)
    project.commit("base")
    session = kept(project, code=3)
    (steady,) = (at for at, case in enumerate(session.cases) if case.id == "steady")
    assert [kept.round for kept in session.rounds if kept.case == steady] == [1, 2]
