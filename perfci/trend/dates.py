"""Days of ISO 8601 times as whole numbers, without a clock."""

from __future__ import annotations

import re

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


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
    """Return ``YYYY-MM-DD`` of a day counted from 1970 (Hinnant's ``civil_from_days``)."""
    era, of_era = divmod(day + 719_468, 146_097)
    of = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * of + of // 4 - of // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = of + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{of_year - (153 * shifted + 2) // 5 + 1:02d}"
