"""What counts as a change: the numbers a user may set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrendSettings:
    """How sure, how large, how recent.

    ``alpha`` is about the chance of any false change in one quiet series, ``false_discoveries``
    bounds the share of false ones among all that a report names. ``floor`` is the smallest change
    worth naming, a share of the level. ``drift_days`` are compared with the accepted level, and
    ``drift_floor`` is the smallest drift worth naming.
    """

    alpha: float = 0.001
    false_discoveries: float = 0.05
    floor: float = 0.005
    drift_days: int = 14
    drift_floor: float = 0.02
