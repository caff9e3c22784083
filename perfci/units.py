"""The one module that turns base units (s, bytes, ratio) and times into text for people, and back.

It names signals, too.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
"""The units of each kind with their sizes, the largest first."""
_SIZES = {
    **{
        name: ("a time", size)
        for size, name in (*_TIME, (1e-6, "us"), (60.0, "min"), (1.0, "seconds"))
    },
    **{name: ("a size", size) for size, name in (*_BYTES, (1.0, "bytes"))},
    **{name: ("a size", size) for size, name in ((1e3, "kB"), (1e6, "MB"), (1e9, "GB"))},
}
"""Units that can be converted, each with what it measures and its size."""
_PERCENT = 100.0
_FACTOR = 3.0
"""From this ratio on, a factor reads better than a percentage."""
SHARE = 'a share of base, such as "5%" or 0.05'
"""The form in which a share is written, for messages."""
_TEXT = re.compile(
    r"\s*(\d{4})[-/](\d\d)[-/](\d\d)[T \-](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"\s*(Z|[+-]\d\d:?\d\d)?\s*"
)
"""The forms of time that tools write. ``datetime.fromisoformat`` knows fewer (no slashes)."""
_NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
_DURATION = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?|{_NUMBER}")
_FIRST_DAY = date(1970, 1, 1)
_END = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp() + 1
"""The end of the year 9999, in s since 1970."""
_EARLIEST = "1971"
"""Earlier times are those of a clock that was never set."""


def format_value(value: float | None, unit: str) -> str:
    """Return ``value`` (in base ``unit``) as a person reads it; a dash for a missing one."""
    if value is None or not math.isfinite(value):
        return "–"
    if unit == "s":
        return _scaled(value, _TIME)
    if unit in {"bytes", "bytes/call"}:
        return _scaled(value, _BYTES) + ("/call" if unit == "bytes/call" else "")
    if unit == "count":
        return f"{value:.0f}"
    number = _three_digits(value)
    return number if unit == "ratio" else f"{number} {unit}"


def unit_factor(old: str, new: str) -> float | None:
    """Return the factor that turns a value in ``old`` into one in ``new``, or None without one."""
    if old == new:
        return 1.0
    (kind, size), (other_kind, other_size) = (_SIZES.get(unit, (unit, 1.0)) for unit in (old, new))
    return size / other_size if kind == other_kind else None


def format_difference(value: float, unit: str) -> str:
    """Return a difference with its sign: ``+1.5 ms``, and ``±0 B`` for no difference."""
    sign = "+" if value > 0 else "-" if value < 0 else "±"
    return f"{sign}{format_value(abs(value), unit)}"


def format_change(ratio: float | None, *, like: float | None = None) -> str:
    """Return a ratio head ÷ base as a change: ``1.052`` becomes ``+5.2 %``, ``78`` becomes ``×78``.

    ``like`` is a ratio that is shown next to it. Its form (percentage or factor) is used.
    """
    if ratio is None or not math.isfinite(ratio):
        return "–"
    if (ratio if like is None else like) >= _FACTOR:
        return f"×{_three_digits(ratio)}"
    percent = round((ratio - 1.0) * _PERCENT, 1) + 0.0  # so that -0.0 reads +0.0
    return f"{percent:+.1f} %"


def format_interval(lo: float | None, hi: float | None, *, like: float | None) -> str:
    """Return a ratio's interval in the form of ``like``: ``+4.1 … +6.3 %`` or ``×74.2 … ×81``."""
    first, last = format_change(lo, like=like), format_change(hi, like=like)
    return f"{first.removesuffix(' %')} … {last}"


def format_share(share: float | None) -> str:
    """Return a share as a percentage without a sign: ``0.05`` becomes ``5 %``."""
    if share is None or not math.isfinite(share):
        return "–"
    if share >= 10.0:
        return "over 1000 %"
    return f"{share * _PERCENT:.3g} %"


def format_duration(seconds: float) -> str:
    """Return a duration for progress lines: ``75.2`` becomes ``1 min 15 s``."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def counted(number: int, word: str) -> str:
    """Return ``1 case``, ``2,000 cases``, ``2 processes``."""
    if number == 1:
        return f"1 {word}"
    return f"{number:,} {word}{'es' if word.endswith('s') else 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: ``a, b and c``."""
    return " and ".join((*(", ".join(words[:-1]),) * (len(words) > 1), *words[-1:]))


def first_of(words: Sequence[str], most: int) -> str:
    """Return the first ``most`` of the words, and how many there are more."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def parse_duration(text: str) -> float:
    """Return seconds for ``90``, ``90s``, ``2m30s`` or ``1h``; ValueError for all else."""
    parts = _DURATION.fullmatch(text.lower().replace(" ", ""))
    if parts is None:
        raise ValueError(f"not a duration: {text!r}")
    hours, minutes, seconds, bare = (float(part or 0) for part in parts.groups())
    seconds += hours * 3600.0 + minutes * 60.0 + bare
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"not a duration: {text!r}")
    return seconds


def parse_share(written: object) -> float:
    """Return a share of zero or more: ``"5%"``, ``"5 %"`` and ``0.05`` are five per cent.

    Raises ValueError, which says what is expected, for anything else. Numbers from 1 on without a
    percent sign are refused, too: 5 is meant as 5 %, and 500 % would gate nothing.
    """
    text = "" if isinstance(written, bool) else str(written).strip()
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(SHARE) from None
    share = number / _PERCENT if percent else number
    if not math.isfinite(share) or share < 0.0:
        raise ValueError(SHARE)
    if share >= 1.0 and not percent:
        raise ValueError(
            f'a share with its percent sign, "{number:g}%" or "{number * _PERCENT:g}%", or one '
            "below 1, such as 0.05"
        )
    return share


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for scale, name in steps:
        if abs(value) >= scale:
            return f"{_three_digits(value / scale)} {name}"
    scale, name = steps[-1]
    return f"{_three_digits(value / scale)} {name}"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 1e6:
        return f"{value:.3g}"
    if magnitude >= 100:
        return f"{value:.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    if magnitude >= 0.001 or magnitude == 0:
        return f"{value:.3g}"
    return f"{value:.2e}"


def signal_name(number: int) -> str:
    """Return a signal's name. Real-time signals without a name are counted from the first."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


class NoTime(ValueError):
    """Not a time, or not between 1970 and 9999."""


def from_seconds(seconds: float) -> str:
    """Return the time ``seconds`` after the beginning of 1970, to the second."""
    if not 0 <= seconds < _END:
        raise NoTime(f"{seconds} s since 1970")
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()


def from_text(text: str) -> tuple[str, bool]:
    """Return the time in ``text``, and whether it names a zone. Without a zone it is in UTC."""
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


@lru_cache(maxsize=10_000)  # runs are sorted by it several times
def in_utc(moment: str) -> str:
    """Return a time as ISO 8601 in UTC, to the second. Such texts sort. Empty if invalid."""
    try:
        utc, _ = from_text(moment)
    except NoTime:
        return ""
    return utc if utc >= _EARLIEST else ""


def day_of(moment: str) -> int | None:
    """Return the day of an ISO 8601 time in UTC, counted from 1970. None if it is not a time."""
    try:
        return (date.fromisoformat(moment[:10]) - _FIRST_DAY).days
    except ValueError:
        return None
