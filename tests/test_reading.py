"""Files that others wrote: regular ones of a bearable size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.config.loading import load_config
from perfci.errors import UsageError
from perfci.files import MOST_BYTES, read_regular
from tests.builders.project import Project


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text\r\n" * 100_000)
    assert read_regular(path) == b"text\r\n" * 100_000


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_could_be_read_for_ever_is_not_begun(tmp_path: Path, kind: str) -> None:
    path = {"device": Path("/dev/zero"), "pipe": tmp_path / "pipe", "folder": tmp_path}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(path)


def test_the_largest_file_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, MOST_BYTES)
    assert len(read_regular(path)) == MOST_BYTES
    os.truncate(path, MOST_BYTES + 1)
    with pytest.raises(OSError, match="64 MiB"):
        read_regular(path)


@pytest.mark.parametrize("name", ["perfci.toml", "pyproject.toml"])
def test_a_configuration_that_is_a_device_is_said_and_not_passed_over(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="not a regular file"):
        load_config(tmp_path)
    with pytest.raises(UsageError, match="not a regular file"):
        load_config(tmp_path, tmp_path / name)


def test_a_report_that_is_a_device_is_said(project: Project) -> None:
    (project.folder / "report.json").symlink_to("/dev/zero")
    done = project.perfci("report", "report.json").without_traceback()
    assert done.code == 4
    assert "report.json" in done.err
    assert "not a regular file" in done.err
