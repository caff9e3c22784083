"""Times as tools and people write them, as ISO 8601 in UTC. Arithmetic: there is no clock here."""

from __future__ import annotations

import calendar
import re
from functools import lru_cache

_TEXT = re.compile(
    r"\s*(\d{4})[-/](\d\d)[-/](\d\d)[T \-](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"\s*(Z|[+-]\d\d:?\d\d)?\s*"
)
_LAST = 253_402_300_800
"""The year 10000, in s since 1970."""


class NoTime(ValueError):
    """It is no time, or none between 1970 and 9999."""


def from_seconds(seconds: float) -> str:
    """Return the time ``seconds`` after the beginning of 1970, to the second."""
    if not 0 <= seconds < _LAST:
        raise NoTime(f"{seconds} s since 1970")
    days, rest = divmod(int(seconds), 86_400)
    year, month, day = civil(days)
    hour, rest = divmod(rest, 3600)
    minute, second = divmod(rest, 60)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+00:00"


def from_text(text: str) -> tuple[str, bool]:
    """Return the time that ``text`` tells, and whether it names a zone; UTC where it doesn't."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise NoTime(text[:100])
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if hour > 23 or minute > 59 or second > 60:
        raise NoTime(text[:100])
    try:
        seconds = calendar.timegm((year, month, day, hour, minute, min(second, 59)))
    except ValueError as error:  # a 13th month
        raise NoTime(text[:100]) from error
    if not from_seconds(seconds).startswith(f"{year:04}-{month:02}-{day:02}"):  # 30 February
        raise NoTime(text[:100])
    zone = match[7]
    return from_seconds(seconds - _offset(zone)), zone is not None


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    size = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -size if zone[0] == "-" else size


def civil(days: int) -> tuple[int, int, int]:
    """Return days since 1970 as year, month, day (Howard Hinnant's ``civil_from_days``)."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


# Times that histories hold: in UTC, so that they can be compared, and their days. No clock.

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
