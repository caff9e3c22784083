"""Base units to text for people, and back."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.units import (
    counted,
    format_change,
    format_duration,
    format_interval,
    format_share,
    format_value,
    parse_duration,
    parse_share,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.5 s"),
        (0.00123, "s", "1.23 ms"),
        (31e-6, "s", "31.0 µs"),
        (5e-9, "s", "5 ns"),
        (0.0, "s", "0 ns"),
        (-0.002, "s", "-2 ms"),
        (1 << 30, "bytes", "1 GiB"),
        (1536, "bytes", "1.5 KiB"),
        (12, "bytes", "12.0 B"),
        (2048, "bytes/call", "2 KiB/call"),
        (3.0, "count", "3"),
        (0.25, "ratio", "0.25"),
        (752.3, "items/s", "752 items/s"),
        (None, "s", "–"),
        (math.nan, "s", "–"),
        (math.inf, "bytes", "–"),
    ],
)
def test_a_value_reads_as_people_write_it(value: float | None, unit: str, text: str) -> None:
    assert format_value(value, unit) == text


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_a_formatted_time_is_the_time_to_three_digits(seconds: float) -> None:
    number, unit = format_value(seconds, "s").split()
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=0.0051)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.052, "+5.2 %"), (0.9, "-10.0 %"), (1.0, "+0.0 %"), (None, "–"), (math.nan, "–")],
)
def test_a_ratio_reads_as_a_signed_change(ratio: float | None, text: str) -> None:
    assert format_change(ratio) == text


@pytest.mark.parametrize(("share", "text"), [(0.05, "5 %"), (0.0125, "1.25 %"), (None, "–")])
def test_a_share_has_no_sign(share: float | None, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (75.2, "1 min 15 s"), (7260, "2 h 1 min"), (-3, "0 s")],
)
def test_a_duration_reads_in_at_most_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), (" 5 m ", 300), ("1.5H", 5400)]
)
def test_a_duration_is_read_with_and_without_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0", "-5m", "nan", "inf", "five", "1d", "1e999"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("number", "word", "said"),
    [
        (0, "case", "0 cases"),
        (1, "case", "1 case"),
        (2, "process", "2 processes"),
        (1, "process", "1 process"),
    ],
)
def test_what_is_counted_is_one_or_many(number: int, word: str, said: str) -> None:
    assert counted(number, word) == said


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("5%", 0.05),
        ("0.5 %", 0.005),
        (" 5 % ", 0.05),
        (0.05, 0.05),
        ("0.05", 0.05),
        (0, 0.0),
        ("0%", 0.0),
        ("100%", 1.0),
        ("250%", 2.5),
    ],
)
def test_a_share_is_written_as_a_percentage_or_below_one(written: object, share: float) -> None:
    assert parse_share(written) == pytest.approx(share)


@pytest.mark.parametrize("written", [5, 1, 1.0, "5", "1.5"])
def test_a_share_of_one_and_more_without_its_percent_sign_is_refused(written: object) -> None:
    """``threshold = 5`` would let everything pass that is slower by less than six times."""
    number = float(str(written))
    with pytest.raises(ValueError, match=f'"{number:g}%" or "{100 * number:g}%"'):
        parse_share(written)


@pytest.mark.parametrize(
    "written", [-0.1, "-5%", True, None, "", "%", "five", "5%%", "nan", "inf", "nan%", [0.05]]
)
def test_what_is_no_share_is_told_what_one_looks_like(written: object) -> None:
    with pytest.raises(ValueError, match=re.escape('"5%" or 0.05')):
        parse_share(written)


@pytest.mark.parametrize(
    ("lo", "ratio", "hi", "change", "interval"),
    [
        (1.04, 1.05, 1.06, "+5.0 %", "+4.0 … +6.0 %"),
        (74.2, 78.002, 81.0, "×78.0", "×74.2 … ×81.0"),
        (2.9, 3.1, 3.3, "×3.1", "×2.9 … ×3.3"),
        (2.8, 2.9, 3.1, "+190.0 %", "+180.0 … +210.0 %"),
        (0.01, 0.02, 0.03, "-98.0 %", "-99.0 … -97.0 %"),
    ],
)
def test_from_three_times_on_a_change_is_a_factor_and_its_interval_is_written_alike(
    lo: float, ratio: float, hi: float, change: str, interval: str
) -> None:
    assert format_change(ratio) == change
    assert format_interval(lo, hi, like=ratio) == interval
