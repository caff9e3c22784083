"""The shapes of a benchmark beside each other: what each takes, and which compile anew."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.model.finding import Finding


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One shape of head. Times in s; what isn't known is None.

    ``ratio`` is head's latency ÷ base's with its 95 % interval; ``compiles`` is 1 where the
    shape's first call compiled, by the failed ``guard``, empty where there was none.
    """

    shape: str
    latency: float | None
    base_latency: float | None = None
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    compiles: float | None = None
    base_compiles: float | None = None
    guard: str = ""


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """The shapes of ``case``, the smallest sizes first.

    ``hit_rate`` is the share of shapes that code compiled for another served, of compiled work;
    ``suggestion`` the one thing that may spare compiles, None where nothing does. ``moved`` are the
    shapes of which latency or compiles moved.
    """

    case: str
    rows: tuple[ShapeRow, ...]
    hit_rate: float | None = None
    base_hit_rate: float | None = None
    suggestion: Finding | None = None
    moved: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a shape moved, or base served another share of them."""
        rates = (self.hit_rate, self.base_hit_rate)
        return bool(self.moved) or (None not in rates and self.hit_rate != self.base_hit_rate)
