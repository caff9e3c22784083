"""Why one case moved: the differences between the sides that instruments find inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.finding import Plain


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the sides that one instrument found."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    seconds: float = 0.0
    bytes: float = 0.0
    metric: str = ""
    file: str = ""
    line: int = 0
    hunk: bool = False
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Why:
    """The differences that explain why one case moved."""

    case: str
    differences: tuple[Difference, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
