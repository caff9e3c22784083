"""What the metrics' collectors find in one worker, hook by hook."""

from __future__ import annotations

from perfci.metrics import Reading, Scene, families
from perfci.model.worker import GraphEvent


class Gathering:
    """The collectors of a worker, in the order of reports, and all that they found so far."""

    def __init__(self, scene: Scene) -> None:
        self._collectors = [family.collector(scene) for family in families()]
        self.values: dict[str, float] = {}
        self.missing: dict[str, str] = {}
        self.events: list[GraphEvent] = []
        self.warnings: list[str] = []

    def at_set_up(self) -> None:
        """Say that set-up is done, and nothing was called yet."""
        for one in self._collectors:
            one.set_up()

    def before_bursts(self) -> None:
        """Say that bursts are next."""
        for one in self._collectors:
            one.warm()

    def after_bursts(self) -> None:
        """Take what is known of the bursts."""
        for one in self._collectors:
            self._take(one.after_bursts())

    def finish(self) -> None:
        """Take what would have disturbed the bursts, and at last what needs no more calls."""
        for one in self._collectors:
            self._take(one.more_calls())
        for one in self._collectors:
            self._take(one.last())

    def _take(self, reading: Reading) -> None:
        self.values |= reading.values
        self.missing |= reading.missing
        self.events += reading.events
        self.warnings += reading.warnings
