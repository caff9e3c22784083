"""``--keep-bursts``: a session's file has all that its decisions were made from."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from benchmarks.corpus.sessions import read_kept
from perfci.errors import DamagedFile
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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no MessagePack"),
        gzip.compress(msgspec.msgpack.encode({"schema": "perfci.bursts/1"})),
    ],
    ids=["empty", "no gzip", "no MessagePack", "no session"],
)
def test_what_was_not_kept_by_perfci_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.bursts"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"odd\.bursts has no bursts"):
        read_kept(path)
