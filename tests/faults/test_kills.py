"""A few kills of commands that write; ``python -m tests.faults.kills`` tries 200."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kills import SUBJECTS, Subject, killed

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("name", ["history import", "comment"])
def test_nothing_is_lost_or_double_after_a_kill(name: str, tmp_path: Path) -> None:
    outcome = killed(SUBJECTS[name][0], tmp_path, most=2, seed=3)
    assert outcome.tried == 2
    assert not outcome.faults


class Idle(Subject):
    """Nothing comes of it."""

    command = ("--version",)

    def prepare(self, folder: Path) -> None:
        folder.mkdir()

    def now(self) -> object:
        return sorted(path.name for path in self.place.iterdir())


def test_what_differs_from_an_undisturbed_command_is_a_fault(tmp_path: Path) -> None:
    class Different(Idle):
        def wrong(self):  # type: ignore[no-untyped-def]
            (self.place / "left").write_text("")
            yield "left a file"

    (first, second) = killed(Different, tmp_path, most=1, seed=1).faults
    assert "left a file" in first
    assert "again: ['left'], not []" in second
