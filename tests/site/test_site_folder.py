"""The folder of the site: replaced whole, or left as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.cli.site_folder import check_replaceable, replace_folder
from perfci.errors import OutsideError, UsageError

OURS = b'<meta name="generator" content="perfci trend">'


def files(text: str) -> Iterator[tuple[str, bytes]]:
    yield "data/one.js", text.encode()
    yield "index.html", OURS + text.encode()


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text().removeprefix(OURS.decode())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_new_site_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    site = tmp_path / "deep" / "site"
    replace_folder(site, files("old"))
    (site / "data" / "left.js").write_text("of a benchmark that is gone")
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


def test_an_empty_folder_and_none_can_be_taken(tmp_path: Path) -> None:
    check_replaceable(tmp_path)
    check_replaceable(tmp_path / "missing")


def test_a_file_in_the_way_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("")
    with pytest.raises(UsageError, match="no folder"):
        check_replaceable(tmp_path / "site")


def test_when_rendering_fails_the_old_site_stays_and_nothing_is_left(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, bytes]]:
        yield "index.html", OURS
        raise KeyboardInterrupt

    site = tmp_path / "site"
    replace_folder(site, files("old"))
    with pytest.raises(KeyboardInterrupt):
        replace_folder(site, failing())
    assert contents(site)["index.html"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_what_killed_writers_left_is_removed_and_what_they_took_is_put_back(
    tmp_path: Path,
) -> None:
    (tmp_path / ".site.writing-abc" / "data").mkdir(parents=True)
    taken = tmp_path / ".site.replaced-abc" / "site"
    taken.mkdir(parents=True)
    (taken / "index.html").write_bytes(OURS + b"old")
    site = tmp_path / "site"

    def looking() -> Iterator[tuple[str, bytes]]:
        assert contents(site) == {"index.html": "old"}
        yield from files("new")

    replace_folder(site, looking())
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert contents(site)["index.html"] == "new"


WRITER = """
import sys
from pathlib import Path
from perfci.cli.site_folder import replace_folder
mark = b'<meta name="generator" content="perfci trend">'
print("ready", flush=True)
replace_folder(Path(sys.argv[1]), [("index.html", mark + b"second")])
"""


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-c", WRITER, str(site)]

    def interrupted() -> Iterator[tuple[str, bytes]]:
        assert second.stdout is not None
        assert second.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=0.5)
        assert not site.exists()
        yield from files("first")

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
        replace_folder(site, interrupted())
        assert second.wait(timeout=60) == 0
    assert contents(site) == {"index.html": "second"}
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_place_that_takes_no_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="can't be written"):
        replace_folder(Path("/proc/site"), files("new"))
