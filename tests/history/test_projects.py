"""Each repository has its own history: benchmarks of one name in two projects are two series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from perfci.commands.history import history_address, recorder
from perfci.commands.project import Caller
from perfci.commands.project import Project as Opened
from perfci.config.loading import Config
from perfci.errors import UsageError
from perfci.history.address import own_file
from perfci.measure.checkout.commits import first_commit
from perfci.measure.checkout.git import open_repository
from perfci.outputs import silent
from tests.builders.project import Project


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.delenv("PERFCI_HISTORY", raising=False)
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Project:
    return Project(tmp_path / "other")


def opened(project: Project) -> Opened:
    """Return the project with the configuration of none."""
    return Opened(open_repository(project.folder), Config(), Caller(project.folder))


def test_a_repositorys_history_is_named_by_its_first_commit(project: Project, data: Path) -> None:
    first = project.commit("first")
    project.commit("second")
    own = data / "perfci" / "history" / f"{first}.sqlite"
    assert history_address(Config(), project.folder) == str(own)
    project.git("clone", "--quiet", ".", "../clone")
    assert history_address(Config(), project.folder.parent / "clone") == str(own)
    mine = history_address(Config(project="mine"), project.folder)
    assert mine == str(own.with_name("mine.sqlite"))


def test_what_is_merged_into_a_repository_does_not_change_its_first_commit(
    project: Project, other: Project
) -> None:
    foreign = other.commit("elsewhere")
    first = project.commit("first", **{"lib.py": "x = 1\n"})
    project.git("fetch", "--quiet", str(other.folder), "main")
    project.git("merge", "--quiet", "--strategy=ours", "--allow-unrelated-histories", foreign)
    assert first_commit(project.folder) == first


def test_where_nothing_tells_whose_history_it_is_the_place_has_to_be_named(
    project: Project, tmp_path: Path
) -> None:
    project.commit("first")
    project.commit("second")
    project.git("clone", "--quiet", "--depth=1", project.folder.as_uri(), "../shallow")
    (tmp_path / "no repository").mkdir()
    for folder in (project.folder.parent / "shallow", tmp_path / "no repository"):
        with pytest.raises(UsageError) as told:
            history_address(Config(), folder)
        assert told.value.slug == "whose-history"
        assert "--history" in told.value.advice
        assert history_address(Config(project="mine"), folder) == str(own_file("mine"))
        assert history_address(Config(history="h.sqlite"), folder) == str(folder / "h.sqlite")


def record(project: Opened, place: str) -> None:
    head = project.repository.resolve("HEAD")
    config = structs.replace(project.config, history=place)
    recorder(project.repository, config, silent, head)


def test_a_project_does_not_record_into_the_history_of_another(
    project: Project, other: Project, tmp_path: Path
) -> None:
    place = str(tmp_path / "shared.sqlite")
    first = project.commit("first")
    other.commit("first of another")
    mine, theirs = opened(project), opened(other)
    record(mine, place)
    record(mine, place)
    with pytest.raises(UsageError) as told:
        record(theirs, place)
    assert told.value.slug == "other-project"
    assert f'project = "{first}"' in told.value.advice
    named = replace(theirs, config=Config(project=first))
    record(named, place)
    done = other.perfci("nightly", "--history", place).without_traceback()
    assert (done.code, "[other-project]" in done.err) == (2, True), done.text
