"""What the metrics' collectors find in one worker, hook by hook."""

from __future__ import annotations

from functools import partial

from perfci.metrics import Reading, Scene, families
from perfci.model.metric import Metric
from perfci.model.worker import GraphEvent


class Gathering:
    """The collectors of a worker, in the order of reports, and all that they found so far."""

    def __init__(self, scene: Scene) -> None:
        self._collectors = [
            (family, family.ask("its COLLECTOR", partial(family.collector, scene)))
            for family in families()
        ]
        self.values: dict[str, float] = {}
        self.missing: dict[str, str] = {}
        self.events: list[GraphEvent] = []
        self.warnings: list[str] = []

    def at_set_up(self) -> None:
        """Say that set-up is done, and nothing was called yet."""
        for family, one in self._collectors:
            family.ask("its set_up", one.set_up)

    def before_bursts(self) -> None:
        """Say that bursts are next."""
        for family, one in self._collectors:
            family.ask("its warm", one.warm)

    def after_bursts(self) -> None:
        """Take what is known of the bursts."""
        for family, one in self._collectors:
            self._take(family.read("its after_bursts", one.after_bursts))

    def finish(self) -> None:
        """Take what would have disturbed the bursts, and at last what needs no more calls."""
        for family, one in self._collectors:
            self._take(family.read("its more_calls", one.more_calls))
        for family, one in self._collectors:
            self._take(family.read("its last", one.last))

    def of_others(self) -> tuple[Metric, ...]:
        """Return the metrics of other distributions that there are values of."""
        found = (
            one for family, _ in self._collectors if family.distribution for one in family.metrics
        )
        return tuple(metric for metric in found if metric.name in self.values)

    def _take(self, reading: Reading) -> None:
        self.values |= reading.values
        self.missing |= reading.missing
        self.events += reading.events
        self.warnings += reading.warnings
