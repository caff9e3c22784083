"""Times that histories hold: in UTC, so that they can be compared, and their days. No clock."""

from __future__ import annotations

import re
from functools import lru_cache

from perfci.record.instant import NoTime, civil, from_text

_UNSET = "1971"
"""A time of 1970 was told by a clock that nobody set."""
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


@lru_cache(maxsize=10_000)  # an environment's runs are sorted by it, several times
def in_utc(moment: str) -> str:
    """Return an ISO 8601 time in UTC to the second: as texts they sort. Empty if it tells none."""
    try:
        found, _ = from_text(moment)
    except NoTime:
        return ""
    return found if found >= _UNSET else ""


def day_of(moment: str) -> int | None:
    """Return the day of an ISO 8601 time in UTC, counted from 1970; None where it tells none.

    Notes
    -----
    Howard Hinnant's ``days_from_civil``.
    """
    match = _DATE.match(moment)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(day: int) -> str:
    """Return ``YYYY-MM-DD`` of a day counted from 1970."""
    year, month, date = civil(day)
    return f"{year:04d}-{month:02d}-{date:02d}"
