"""Files that are named as outputs: written whole, and nothing is waited for or lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from perfci.cli.options import Outputs
from perfci.cli.output import check_writable
from perfci.errors import OutsideError
from perfci.writing import require_writable, write_file


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_file_is_replaced_with_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.json"
    require_writable(path)
    assert list(path.parent.iterdir()) == []
    write_file(path, "one")
    path.chmod(0o640)
    write_file(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in path.parent.iterdir()] == ["r.json"]


def test_what_was_there_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    write_file(path, "one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(path, "two")
    assert path.read_text() == "one"
    assert [one.name for one in tmp_path.iterdir()] == ["r.json"]


def test_a_file_that_is_a_mount_of_its_own_is_written_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text("one")

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    write_file(path, "two")
    assert path.read_text() == "two"
    assert [one.name for one in tmp_path.iterdir()] == ["r.json"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("there")
    require_writable(link)
    assert link.is_symlink()
    assert not link.exists()
    write_file(link, "one")
    require_writable(link)
    write_file(link, "two")
    assert link.is_symlink()
    assert (tmp_path / "there").read_text() == "two"


def test_a_pipe_is_refused_and_not_waited_for(pipe: Path) -> None:
    for asked in (pipe, pipe.parent):
        with pytest.raises(OSError, match=r"no regular file|Is a directory"):
            require_writable(asked)
        with pytest.raises(OSError, match=r"no regular file|Is a directory"):
            write_file(asked, "text")
    with pytest.raises(OutsideError, match="it is no regular file"):
        check_writable(Outputs(pipe, None, None, None, None))


def test_what_this_process_has_open_and_devices_are_written() -> None:
    reading, writing = os.pipe()
    own = Path(f"/dev/fd/{writing}")
    require_writable(own)
    write_file(own, "text")
    os.close(writing)
    with os.fdopen(reading) as read:
        assert read.read() == "text"
    write_file(Path("/dev/null"), "text")
    with pytest.raises(OSError, match="No space"):
        write_file(Path("/dev/full"), "text")
