"""How the time for a case is shared among its instruments, by made-up workers and a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from perfci.instruments import Instrument, instruments
from perfci.measure.explaining import _SideRecorder


@dataclass
class Clock:
    seconds: float = 100.0

    def now(self) -> float:
        return self.seconds


class Recorder:
    """A worker of a side, whose recordings take so long."""

    def __init__(self, side: str, clock: Clock, takes_s: float) -> None:
        self.order = SimpleNamespace(side=side)
        self._clock, self._takes_s = clock, takes_s

    def send(self, message: Any) -> None:
        assert message["do"] == "record"

    def expect(self, _kind: str, within_s: float) -> dict[str, Any]:
        assert self._takes_s <= within_s, "it would be killed"
        self._clock.seconds += self._takes_s
        return {"why": "", "recorded": {}}

    def field(self, message: dict[str, Any], name: str, _type: object) -> Any:
        return message[name]


def explainer(clock: Clock, instrument: Instrument, left_s: float) -> _SideRecorder:
    explaining = object.__new__(_SideRecorder)
    explaining._executor, explaining._left_s = clock, left_s  # type: ignore[assignment]
    explaining._waiting, explaining.recorded, explaining.unavailable = [instrument], {}, {}
    explaining._no_profile = False
    return explaining


@pytest.mark.parametrize(("takes_s", "runs"), [(0.01, 5), (0.9, 5), (2.0, 2), (4.9, 1)])
def test_repeats_end_in_half_of_the_time_and_what_was_recorded_is_kept(
    takes_s: float, runs: int
) -> None:
    clock, instrument = Clock(), replace(instruments()["operators"], runs=5)
    explaining = explainer(clock, instrument, 10.0)
    worker: Any = Recorder("head", clock, takes_s)
    explaining._record(instrument, worker, 1e-3)
    assert len(explaining.recorded["operators"]) == runs
    assert explaining._waiting == []
    assert explaining.unavailable == {}
