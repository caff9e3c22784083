"""Times as tools and people write them, as ISO 8601 in UTC. Arithmetic: no clock is read here."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

_TEXT = re.compile(
    r"\s*(\d{4})[-/](\d\d)[-/](\d\d)[T \-](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"\s*(Z|[+-]\d\d:?\d\d)?\s*"
)
"""What tools write. ``datetime.fromisoformat`` takes less (slashes), and more in newer Pythons."""
_FIRST_DAY = date(1970, 1, 1)
_END = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp() + 1
_EARLIEST = "1971"
"""A time of 1970 is that of a clock that nobody has set."""


class NoTime(ValueError):
    """It is not a time, or not one between 1970 and 9999."""


def from_seconds(seconds: float) -> str:
    """Return the time ``seconds`` after the beginning of 1970, to the second."""
    if not 0 <= seconds < _END:
        raise NoTime(f"{seconds} s since 1970")
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()


def from_text(text: str) -> tuple[str, bool]:
    """Return the time that ``text`` says, and whether it names a zone; UTC where it doesn't."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise NoTime(text[:100])
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    second -= second == 60  # a leap second
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(match[7]))
        return from_seconds(moment.timestamp()), match[7] is not None
    except ValueError as error:
        raise NoTime(text[:100]) from error


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


@lru_cache(maxsize=10_000)  # an environment's runs are sorted by it, several times
def in_utc(moment: str) -> str:
    """Return an ISO 8601 time in UTC to the second: as texts they sort. Empty if it says none."""
    try:
        found, _ = from_text(moment)
    except NoTime:
        return ""
    return found if found >= _EARLIEST else ""


def day_of(moment: str) -> int | None:
    """Return the day of an ISO 8601 time in UTC, counted from 1970; None where it says none."""
    try:
        return (date.fromisoformat(moment[:10]) - _FIRST_DAY).days
    except ValueError:
        return None


def date_of(day: int) -> str:
    """Return ``YYYY-MM-DD`` of a day counted from 1970."""
    return (_FIRST_DAY + timedelta(days=day)).isoformat()
