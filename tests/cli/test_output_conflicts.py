"""Outputs that are one file, or the history itself, are refused with everything left as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.history.store import open_history
from tests.builders.project import Done, Project
from tests.builders.recorded import recorded


@pytest.fixture
def kept(project: Project) -> Path:
    """A folder with a history, links to it, and a journal; the project is beside it."""
    folder = project.folder.parent / "kept"
    folder.mkdir()
    with open_history(str(folder / "g.sqlite")) as history:
        history.record([recorded(number) for number in range(1, 4)])
    (folder / "symbolic").symlink_to("g.sqlite")
    os.link(folder / "g.sqlite", folder / "hard")
    (folder / "folder").symlink_to(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(project: Project, *arguments: str, slug: str) -> Done:
    done = project.perfci(*arguments).without_traceback()
    assert done.code == 2, done.text
    assert f"[{slug}]" in done.err, done.text
    return done


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--json", "g.sqlite"),
        ("--markdown", "symbolic"),
        ("--json", "hard"),
        ("--json", "folder/g.sqlite"),
        ("--markdown", "g.sqlite-journal"),
        ("--json", "folder/../kept/g.sqlite-wal"),
    ],
)
def test_a_report_is_not_written_over_its_history(
    project: Project, kept: Path, option: str, name: str
) -> None:
    before = contents(kept)
    place = str(kept / "g.sqlite")
    done = refused(
        project,
        *("trend", "--history", place, option, str(kept / name)),
        slug="output-is-history",
    )
    assert option in done.err
    assert contents(kept) == before


def test_a_folder_with_other_files_gets_no_site(project: Project, kept: Path) -> None:
    before = contents(kept)
    trend = ("trend", "--history", str(kept / "g.sqlite"))
    refused(project, *trend, "--html", str(kept), slug="not-a-site")
    assert contents(kept) == before


def test_a_dash_is_standard_output_and_a_pipe_or_a_link_stays_what_it_is(
    project: Project, kept: Path
) -> None:
    export = ("history", "export", "--history", str(kept / "g.sqlite"))
    printed = project.perfci(*export)
    assert printed.out.count("\n") > 3
    assert project.perfci(*export, "-") == printed
    assert not (project.folder / "-").exists()
    # not /dev/null or /dev/stdout: were this wrong, root's tests would replace them
    assert project.process(*export, "/dev/fd/1") == printed
    (kept / "link").symlink_to("out.jsonl")
    assert project.perfci(*export, str(kept / "link")).code == 0
    assert (kept / "link").is_symlink()
    (kept / "out.jsonl").chmod(0o640)
    assert project.perfci(*export, str(kept / "link")).code == 0
    assert (kept / "out.jsonl").read_text() == printed.out
    assert (kept / "out.jsonl").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "command",
    [
        ("run",),
        ("compare", "HEAD", "HEAD", "--allow-same-commit"),
        ("check",),
        ("trend",),
    ],
    ids=lambda command: command[0],
)
def test_two_outputs_in_one_file_are_refused_before_anything_is_measured(
    project: Project, kept: Path, command: tuple[str, ...]
) -> None:
    project.commit("nothing to measure: anything that is would fail")
    (project.folder / "old").write_text("old")
    (project.folder / "link").symlink_to("old")
    for one, other in (("old", "./old"), ("old", "link"), ("new", str(project.folder / "new"))):
        done = refused(project, *command, "--json", one, "--markdown", other, slug="same-output")
        assert "--json and --markdown" in done.err
    assert (project.folder / "old").read_text() == "old"
    assert not (project.folder / "new").exists()
