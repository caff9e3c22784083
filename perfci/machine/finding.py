"""What one check of a machine found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "worse", "impossible"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, how grave it is, and what to do."""

    level: Level
    subject: str
    found: str
    advice: str = ""
