"""Outputs that are one file, or the history itself, are refused with everything left as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.history.address import files_at
from perfci.history.store import open_history
from perfci.outputs import require_distinct
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
        ("--openmetrics", "folder/g.sqlite"),
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


def test_a_site_is_not_put_around_the_history_or_another_output(
    project: Project, kept: Path
) -> None:
    before = contents(kept)
    trend = ("trend", "--history", str(kept / "g.sqlite"))
    refused(project, *trend, "--html", str(kept / "folder"), slug="output-in-folder")
    site = project.folder / "site"
    refused(
        project,
        *(*trend, "--html", str(site), "--json", str(site / "t.json")),
        slug="output-in-folder",
    )
    assert not site.exists()
    assert contents(kept) == before


def test_a_users_file_in_a_site_is_reported_before_the_history_is_read(
    project: Project, kept: Path
) -> None:
    project.commit()
    site = project.folder / "site"
    trend = ("trend", "--history", str(kept / "g.sqlite"), "--html", str(site))
    assert project.perfci(*trend).code == 0
    assert project.perfci(*trend).code == 0
    (site / "CNAME").write_text("perf.example.org")
    done = refused(project, *trend, "--json", str(kept / "t.json"), slug="not-a-site")
    assert "CNAME" in done.err
    assert (site / "CNAME").read_text() == "perf.example.org"
    assert not (kept / "t.json").exists()


def test_an_export_is_not_written_over_the_history(project: Project, kept: Path) -> None:
    before = contents(kept)
    place = ("--history", str(kept / "g.sqlite"))
    for name in ("g.sqlite", "symbolic", "hard", "g.sqlite-journal"):
        export = ("history", "export", *place, str(kept / name))
        refused(project, *export, slug="output-is-history")
    assert contents(kept) == before
    own = {"PERFCI_HISTORY": str(kept / "g.sqlite")}
    assert project.perfci("history", "export", str(kept / "symbolic"), **own).code == 2
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
    [("run",), ("compare", "HEAD", "HEAD", "--same"), ("check",), ("calibrate",), ("trend",)],
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


@pytest.mark.parametrize("command", [("run",), ("compare", "HEAD", "HEAD", "--same"), ("check",)])
def test_what_is_measured_is_not_written_over_the_history(
    project: Project, kept: Path, command: tuple[str, ...]
) -> None:
    project.commit("nothing to measure: anything that is would fail")
    before = contents(kept)
    place = ("--history", str(kept / "g.sqlite"))
    refused(project, *command, *place, "--csv", str(kept / "hard"), slug="output-is-history")
    assert contents(kept) == before


def test_devices_take_any_number_of_texts(tmp_path: Path) -> None:
    null = Path("/dev/null")
    require_distinct({"--json": null, "--markdown": null}, files_at(str(tmp_path / "h.sqlite")))


def test_a_link_that_leads_nowhere_yet_is_the_file_that_it_will_make(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("later")
    with pytest.raises(UsageError, match="one file"):
        require_distinct({"--json": tmp_path / "link", "--csv": tmp_path / "later"})


def test_a_history_is_a_file_and_what_sqlite_puts_beside_it_and_nothing_in_a_server(
    tmp_path: Path,
) -> None:
    (tmp_path / "link").symlink_to("h.sqlite")
    names = {path.name for path in files_at(str(tmp_path / "link"))}
    ends = ("-journal", "-wal", "-shm")
    assert names == {"link", *(f"{name}{end}" for name in ("link", "h.sqlite") for end in ends)}
    assert files_at("postgresql://me@host/perf") == files_at("mysql://h/d") == ()
