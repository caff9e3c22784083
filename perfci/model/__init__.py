"""WHAT was measured: frozen types and their codec. No I/O.

All but ``codec`` needs the standard library only, because workers import it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def inherited(kind: type, record: Any) -> dict[str, Any]:
    """Return the value of each field of ``kind`` in ``record``, which has them all."""
    return {each.name: getattr(record, each.name) for each in fields(kind)}
