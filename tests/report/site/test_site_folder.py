"""The folder of the site: replaced whole, or left as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.outputs import MANIFEST, replace_folder


def files(text: str) -> Iterator[tuple[str, bytes]]:
    yield "data/one.js", text.encode()
    yield "index.html", text.encode()


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_a_new_site_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    site = tmp_path / "deep" / "site"
    replace_folder(site, [*files("old"), ("gone/left.js", b"of a benchmark that is gone")])
    replace_folder(site, files("new"))
    assert contents(site) == {"data/one.js": "new", "index.html": "new"}
    assert [path.name for path in site.parent.iterdir()] == ["site"]
    assert site.stat().st_mode & 0o777 == 0o755


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "index.html").write_text("<p>mine, too")
    with pytest.raises(UsageError, match="other files"):
        replace_folder(tmp_path, files("new"))
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("CNAME", "CNAME"),
        ("data/notes.txt", "data/notes.txt"),
        (".git/objects/ab/cd", ".git/"),
        ("data/\x1b[31mred", "data/red"),
    ],
)
def test_what_a_user_put_into_a_site_is_never_removed(
    tmp_path: Path, name: str, shown: str
) -> None:
    site = tmp_path / "site"
    replace_folder(site, files("old"))
    (site / name).parent.mkdir(parents=True, exist_ok=True)
    (site / name).write_text("mine")
    with pytest.raises(UsageError, match="other files") as caught:
        replace_folder(site, files("new"))
    assert caught.value.message.endswith(f": {shown}")
    assert contents(site) == {"data/one.js": "old", "index.html": "old", name: "mine"}
    (site / name).unlink()
    if not name.startswith(".git"):
        replace_folder(site, files("new"))
        assert contents(site)["index.html"] == "new"


def test_links_and_empty_folders_in_a_site_are_the_users(tmp_path: Path) -> None:
    for number, make in enumerate(
        (lambda path: path.symlink_to(tmp_path), lambda path: path.mkdir())
    ):
        site = tmp_path / f"site-{number}"
        replace_folder(site, files("old"))
        make(site / "mine")
        with pytest.raises(UsageError, match="mine"):
            replace_folder(site, files("new"))


def test_what_comes_into_a_site_while_it_is_rendered_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    replace_folder(site, files("old"))

    def rendering() -> Iterator[tuple[str, bytes]]:
        (site / "mine").write_text("mine")
        yield from files("new")

    with pytest.raises(UsageError, match="mine"):
        replace_folder(site, rendering())
    assert contents(site) == {"data/one.js": "old", "index.html": "old", "mine": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_when_rendering_fails_the_old_site_stays_and_nothing_is_left(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, bytes]]:
        yield "index.html", b""
        raise KeyboardInterrupt

    site = tmp_path / "site"
    replace_folder(site, files("old"))
    with pytest.raises(KeyboardInterrupt):
        replace_folder(site, failing())
    assert contents(site)["index.html"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def left_by_a_killed_writer(folder: Path, leftover: str) -> Path:
    """Make what a writer leaves that was killed after its second file."""
    replace_folder(folder / "made", files("left"))
    (folder / "made" / "data" / "one.js").unlink()
    return (folder / "made").rename(folder / leftover)


def test_what_killed_writers_left_is_removed_and_what_they_took_is_put_back(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site"
    (tmp_path / ".site.writing-empty").mkdir()
    (tmp_path / ".site.writing-cut").mkdir()
    (tmp_path / ".site.writing-cut" / "perfci-site.txt").touch()  # a disk that was full at once
    left_by_a_killed_writer(tmp_path, ".site.writing-abc")
    replace_folder(site, files("old"))
    (tmp_path / ".site.replaced-abc").mkdir()
    site.rename(tmp_path / ".site.replaced-abc" / "site")
    (tmp_path / ".site.replaced-def").mkdir()
    left_by_a_killed_writer(tmp_path, ".site.replaced-def/site")

    def looking() -> Iterator[tuple[str, bytes]]:
        assert contents(site)["index.html"] in {"old", "left"}
        yield from files("new")

    replace_folder(site, looking())
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert contents(site)["index.html"] == "new"


@pytest.mark.parametrize(
    "name", [".site.writing-mine", ".site.replaced-mine/site", ".site.replaced-x"]
)
def test_folders_that_only_have_a_leftovers_name_stay(tmp_path: Path, name: str) -> None:
    replace_folder(tmp_path / "site", files("old"))
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "thesis.txt").write_text("mine")
    replace_folder(tmp_path / "site", files("new"))
    assert (tmp_path / name / "thesis.txt").read_text() == "mine"
    assert contents(tmp_path / "site")["index.html"] == "new"


WRITER = """
import sys
from pathlib import Path
from perfci.outputs import replace_folder
print("ready", flush=True)
replace_folder(Path(sys.argv[1]), [("index.html", b"second")])
"""


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-c", WRITER, str(site)]
    started = []

    def interrupted() -> Iterator[tuple[str, bytes]]:
        second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(second)
        assert second.stdout is not None
        assert second.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=0.5)
        assert not site.exists()
        yield from files("first")

    replace_folder(site, interrupted())
    (second,) = started
    with second:
        assert second.wait(timeout=60) == 0
    assert contents(site) == {"index.html": "second"}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
