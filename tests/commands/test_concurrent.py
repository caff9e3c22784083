"""The number of shards that measure at once: as requested, or as calibration found and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfci.commands.concurrent import (
    ConcurrentSpread,
    MachineParts,
    forget_answer,
    keep_answer,
    kept_answer,
)
from perfci.commands.shards import decide

TWO = MachineParts(((0,), (1,)), (), 1)


def answer(count: int, hi: float) -> ConcurrentSpread:
    return ConcurrentSpread(count, hi - 0.1, hi - 0.2, hi, 80, 3, "2026-11-23T00:00:00Z")


def asked(number: int = 0, *answers: ConcurrentSpread, fit: int = 4) -> tuple[int, str]:
    by_count = {one.count: one for one in answers}
    return decide(number, most=8, fit=fit, known=by_count.get)


def test_without_calibration_one_measures_and_how_to_know_more_is_said() -> None:
    count, why = asked()
    assert count == 1
    assert "`perfci calibrate --at-once 4` measures that" in why
    assert asked(fit=1) == (1, "")  # nothing to be known


def test_what_is_asked_for_goes_before_what_calibration_says() -> None:
    assert asked(3, answer(3, 9.0)) == (3, "3 shards at once, as --at-once says")


def test_the_most_that_calibration_allows_measure_at_once() -> None:
    count, why = asked(0, answer(2, 1.1), answer(4, 1.2), answer(8, 1.9))
    assert (count, "4 shards at once: 4 sessions at once spread 1.10 times" in why) == (4, True)


@pytest.mark.parametrize("hi", [1.26, 3.0])
def test_one_measures_where_no_number_is_known_to_disturb_little(hi: float) -> None:
    count, why = asked(0, answer(2, hi), answer(4, 4.0))
    assert (count, "one shard at a time: 2 sessions" in why) == (1, True)


def test_an_answer_is_of_a_project_and_of_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFCI_CACHE_DIR", str(tmp_path))
    root = tmp_path / "project"
    keep_answer(root, TWO, answer(2, 1.1))
    assert kept_answer(root, TWO, 2) == answer(2, 1.1)
    assert kept_answer(tmp_path / "another", TWO, 2) is None
    assert kept_answer(root, replace(TWO, devices=("GPU-a", "GPU-b")), 2) is None
    assert kept_answer(root, replace(TWO, workers=2), 2) is None
    [path] = (tmp_path / "at-once").iterdir()
    path.write_text("{}")
    assert kept_answer(root, TWO, 2) is None
    keep_answer(root, TWO, answer(2, 1.1))
    forget_answer(root, TWO, 2)
    assert kept_answer(root, TWO, 2) is None
