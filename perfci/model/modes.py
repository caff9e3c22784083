"""The mode matrix: what each mode of a benchmark costs and gains beside eager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Advice = Literal["use", "none", "undecided"]


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One mode of head. Times in s, memory in bytes; what isn't known is None.

    ``speedup`` is eager's latency ÷ this mode's, with its 95 % interval; eager has none, and fewer
    than five processes have no interval. ``compile_time`` is with an empty compile cache,
    ``compile_time_cached`` with a warm one; ``pays_after`` and ``pays_after_cached`` are the calls
    after which it is made good, of a mode that is faster.
    """

    mode: str
    case: str
    latency: float
    speedup: float | None = None
    speedup_lo: float | None = None
    speedup_hi: float | None = None
    peak_memory: float | None = None
    compile_time: float | None = None
    compile_time_cached: float | None = None
    pays_after: int | None = None
    pays_after_cached: int | None = None


@dataclass(frozen=True, slots=True)
class ModeMatrix:
    """The modes of ``case``, which is an id without its mode, eager first.

    ``advice`` is to use the mode ``best``; that none helps, so ``best`` is eager; or undecided.
    A mode helps that is faster than eager by ``threshold`` or more. ``base_advice`` and
    ``base_best`` are base's, empty where there is none; ``moved`` are the modes of which latency,
    memory or compile time moved. ``memory`` is the metric of ``peak_memory``.
    """

    case: str
    advice: Advice
    best: str
    threshold: float
    memory: str
    rows: tuple[ModeRow, ...]
    base_advice: Advice | Literal[""] = ""
    base_best: str = ""
    moved: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a mode moved, or another is to be used than on base."""
        decided = self.advice != "undecided" and self.base_advice in {"use", "none"}
        return bool(self.moved) or (decided and self.best != self.base_best)
