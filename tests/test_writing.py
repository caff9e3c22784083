"""Files that are named as outputs: written whole, and nothing is waited for or lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.errors import OutsideError
from perfci.files import require_writable, write_file, write_lines
from perfci.outputs import check_writable


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


@pytest.mark.parametrize("refused", ["open", "replace"])
def test_lines_that_come_once_are_all_written_where_no_file_may_be_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("one")
    usual = getattr(Path, refused)

    def busy(self: Path, *arguments: object, **options: object) -> object:
        if self != path:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return usual(self, *arguments, **options)

    monkeypatch.setattr(Path, refused, busy)
    write_lines(path, (b"%d\n" % number for number in range(3)))
    assert path.read_bytes() == b"0\n1\n2\n"
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl"]


def test_what_was_there_stays_where_the_lines_break_off(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_file(path, "one")

    def breaking() -> Iterator[bytes]:
        yield b"two"
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        write_lines(path, breaking())
    assert path.read_text() == "one"
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("mode", ["wb", "ab"])
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_where_standard_output_is_a_file_it_keeps_what_is_printed_too(
    tmp_path: Path, name: str, mode: str
) -> None:
    printed = tmp_path / "printed"
    printed.write_text("before\n")
    program = (
        "import sys; from pathlib import Path; from perfci.files import write_file;"
        "print('first', flush=True); write_file(Path(sys.argv[1]), 'text\\n'); print('last')"
    )
    with printed.open(mode) as file:
        subprocess.run([sys.executable, "-c", program, name], stdout=file, check=True)
    kept = "before\n" if mode == "ab" else ""
    assert printed.read_text() == f"{kept}first\ntext\nlast\n"


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
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            require_writable(asked)
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            write_file(asked, "text")
    with pytest.raises(OutsideError, match="not a regular file"):
        check_writable({"json": pipe})


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
