"""The folder of the site: the last report's files are replaced, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.outputs import MANIFEST, write_site


def files(text: str) -> Iterator[tuple[str, bytes]]:
    yield "data/one.js", text.encode()
    yield "index.html", text.encode()


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_a_new_site_takes_the_place_of_the_old_one_and_other_files_stay(tmp_path: Path) -> None:
    site = tmp_path / "deep" / "site"
    write_site(site, [*files("old"), ("gone/left.js", b"of a benchmark that is gone")])
    (site / "CNAME").write_text("mine")
    write_site(site, files("new"))
    assert contents(site) == {"data/one.js": "new", "index.html": "new", "CNAME": "mine"}
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_a_folder_with_other_files_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>mine")
    with pytest.raises(UsageError, match="other files"):
        write_site(tmp_path, files("new"))
    assert contents(tmp_path) == {"index.html": "<p>mine"}


def test_a_manifest_removes_nothing_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    write_site(tmp_path / "site", files("old"))
    with (tmp_path / "site" / MANIFEST).open("a") as manifest:
        manifest.write("../thesis.txt\n")
    write_site(tmp_path / "site", files("new"))
    assert (tmp_path / "thesis.txt").exists()


def test_a_site_whose_rendering_failed_is_written_by_the_next_report(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, bytes]]:
        yield "index.html", b""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_site(tmp_path / "site", failing())
    write_site(tmp_path / "site", files("new"))
    assert contents(tmp_path / "site")["index.html"] == "new"
