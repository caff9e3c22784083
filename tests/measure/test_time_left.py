"""The time left, of kept sessions: what is said before each round of their second half."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.time_left_kept import again, opened

KEPT = sorted((Path(__file__).parents[2] / "benchmarks" / "kept" / "time_left").glob("*.json.xz"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_the_time_left_is_about_right_in_the_second_half(path: Path) -> None:
    said = [said / true for at, said, true in again(opened(path)) if at >= 0.5]
    assert said
    assert min(said) >= 0.7
    assert max(said) <= 1.25


def test_sessions_are_kept() -> None:
    assert len(KEPT) >= 3
