"""A few failures of each command that measures; ``python -m tests.faults`` tries more."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.faults.campaign import built
from tests.faults.measuring import MeasuringCampaign, spread

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(("name", "error"), [("compare", errno.ENOSPC), ("check", errno.EIO)])
def test_nothing_measured_is_lost_without_a_word_on_a_failing_disk(
    name: str, error: int, tmp_path: Path
) -> None:
    campaign = MeasuringCampaign(name, built(tmp_path), tmp_path / "runs")
    outcome = campaign.run(most=1, seed=140, errors=[error])
    assert outcome.tried == 1
    assert not outcome.faults


def test_failures_are_spread_over_the_session() -> None:
    assert spread(100, 4, 0) == [1, 26, 51, 76]
    assert spread(100, 4, 30) == [6, 31, 56, 81]
    assert spread(3, 8, 5) == [1, 2, 3]
