"""The record of what a process ran, whatever the user does with descriptors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.worker.hook.perfci_watch.record import Record, decoded_events


def names(file: Path) -> list[str]:
    return [name for _, _, name in decoded_events(file.read_bytes())]


def descriptor_of(file: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return next(int(one.name) for one in links if one.exists() and one.samefile(file))


def test_the_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "events"
    file.touch()
    opened = []
    really = os.open

    def counted(*arguments: object) -> int:
        opened.append(arguments)
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", counted)
    record = Record(str(file))
    for name in ("a", "b", "c"):
        record.say("import", f"/{name}.py", name)
    assert names(file) == ["a", "b", "c"]
    assert len(opened) == 1


def _close(descriptor: int, _: Path) -> None:
    os.close(descriptor)


def _give_to_another_file(descriptor: int, other: Path) -> None:
    opened = os.open(other, os.O_WRONLY | os.O_CREAT)
    os.dup2(opened, descriptor)
    os.close(opened)


@pytest.mark.parametrize("take_away", [_close, _give_to_another_file])
def test_a_descriptor_that_the_user_closed_or_reused_is_not_written_to(
    tmp_path: Path, take_away: Callable[[int, Path], None]
) -> None:
    file, other = tmp_path / "events", tmp_path / "other"
    file.touch()
    other.touch()
    record = Record(str(file))
    record.say("import", "/a.py", "a")
    take_away(descriptor_of(file), other)
    record.say("import", "/b.py", "b")
    assert names(file) == ["a", "b"]
    assert other.read_bytes() == b""


def test_a_file_that_was_removed_is_not_written_to_and_the_reason_is_known(tmp_path: Path) -> None:
    file = tmp_path / "events"
    file.touch()
    record = Record(str(file))
    record.say("import", "/a.py", "a")
    file.unlink()
    record.say("import", "/b.py", "b")
    assert record.unwritten() == "No such file or directory"
    assert not file.exists()


def test_a_fork_with_a_file_of_its_own_repeats_what_was_written_until_then(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()
    second.touch()
    record = Record(str(first))
    record.say("import", "/a.py", "a")
    record.go_on_in(str(second))
    record.say("import", "/b.py", "b")
    assert names(first) == ["a"]
    assert names(second) == ["a", str(os.getpid()), "b"]
