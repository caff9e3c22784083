"""What the store hands over: the recorded runs and their values, in whatever order they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfci.record.metric import Direction
from perfci.trend.series import Night, SeriesKey

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One recorded run without its points, and the key of its environment."""

    environment: str
    night: Night


Distributions = Mapping[SeriesKey, Mapping[str, tuple[float, ...]]]
"""By series, then by run id: one value for each worker."""


@dataclass(frozen=True, slots=True)
class LoadedSeries:
    """The values of one case's metric as they were recorded, in any order.

    ``runs`` (n,) are indices into ``LoadedHistory.runs``, ``values`` (n,) float64 in ``unit``.
    A metric recorded in two units is two of these.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    runs: NDArray[Any]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """A whole history. ``environments`` maps a key to its facts.

    ``sources`` maps (environment, case) to an integer for each of ``runs`` (n,): equal numbers
    are equal hashes of the benchmark's source, -1 is not known. A case may be absent.
    """

    environments: Mapping[str, Mapping[str, str]]
    runs: tuple[LoadedRun, ...]
    series: tuple[LoadedSeries, ...]
    sources: Mapping[tuple[str, str], NDArray[Any]] = field(default_factory=dict)
