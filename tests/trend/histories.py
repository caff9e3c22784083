"""Builders: noise, nights, timelines and series for the tests of the trend."""

import numpy as np

from perfci.model.run import RunHeader
from perfci.trend import Move, Series, SeriesKey, Timeline, TrendSettings
from perfci.trend.change_points import examine_all
from tests.builders.recorded import header

ENVIRONMENT = "machine"


def noise(rho: float, size: int, seed: int) -> np.ndarray:
    """Stationary AR(1) noise of standard deviation 1."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(size)
    for i in range(1, size):
        values[i] = rho * values[i - 1] + np.sqrt(1 - rho**2) * values[i]
    return values


def wobbling(size: int = 120, *, level: float = 100, rho: float = 0.3, seed: int = 0) -> np.ndarray:
    """A level with 1 % of noise."""
    return level * np.exp(0.01 * noise(rho, size, seed))


def date(day: int) -> str:
    """A time in 2025 or 2026, ``day`` days after the first of January 2025, of 28-day months."""
    year, rest = divmod(day, 336)
    return f"{2025 + year:04d}-{1 + rest // 28:02d}-{1 + rest % 28:02d}T02:00:00Z"


def run(number: int, **fields: object) -> RunHeader:
    """The run of one commit."""
    at = {"committed_at": date(number), "measured_at": date(number)}
    return header(number, **at | fields)


def timelines(size: int) -> dict[str, Timeline]:
    """One environment with a run on each of ``size`` commits."""
    return {ENVIRONMENT: Timeline(ENVIRONMENT, tuple(run(i) for i in range(size)))}


def series(values: np.ndarray, case: str = "encoder", **fields: object) -> Series:
    """A series with a value for each run."""
    given = {
        "key": SeriesKey(ENVIRONMENT, case, "latency_p50"),
        "unit": "s",
        "direction": "lower",
        "rows": np.arange(len(values), dtype=np.int32),
        "values": np.asarray(values, dtype=np.float64),
    }
    return Series(**{**given, **fields})


def examine(values: np.ndarray, settings: TrendSettings) -> tuple[Move, ...]:
    """The moves of one series."""
    return examine_all([values], settings)[0]
