"""Base units to text for people, and back."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.units import format_change, format_value, parse_duration, parse_share


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        (" 5 m ", 300),
        ("1.5H", 5400),
        ("2m30s", 150),
        ("1h5m", 3900),
        ("1h 0.5m 3 s", 3633),
        ("1h10s", 3610),
        ("1e-05", 1e-5),
        ("1e+17", 1e17),
    ],
)
def test_a_duration_is_read_with_and_without_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "s", "0", "-5m", "nan", "inf", "five", "1d", "1e999", "30s2m", "2m2m", "1h30", "ms"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


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
