"""Numbers as the database holds them: a run's points, and the values of a point's workers."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence

POINT_BYTES = 12
"""Of a packed point: the number of its series, 4, and its value, 8."""


class NotPacked(ValueError):
    """Bytes that no perfci wrote there."""


def pack(values: Iterable[float]) -> bytes:
    """Return numbers as little-endian float64."""
    return _bytes(array("d", values))


def unpacked(packed: bytes) -> tuple[float, ...]:
    """Return the numbers that ``pack`` packed."""
    return tuple(_array("d", packed))


def pack_points(series: Sequence[int], values: Sequence[float]) -> bytes:
    """Return the numbers of all series as little-endian int32, then their values as float64."""
    return _bytes(array("i", series)) + _bytes(array("d", values))


def unpacked_points(packed: bytes) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return what ``pack_points`` packed. NotPacked for anything else."""
    ends = 4 * count_points(packed)
    series, values = _array("i", packed[:ends]), _array("d", packed[ends:])
    return tuple(map(int, series)), tuple(values)


def count_points(packed: bytes) -> int:
    """Return how many points were packed. NotPacked where a part of one is left over."""
    count, rest = divmod(len(packed), POINT_BYTES)
    if rest:
        raise NotPacked("a run's points are cut short")
    return count


def _bytes(numbers: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _array(kind: str, packed: bytes) -> array[int] | array[float]:
    numbers = array(kind)
    numbers.frombytes(packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
