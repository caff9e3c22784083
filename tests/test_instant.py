"""Times as text, against the standard library's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.units import NoTime, from_seconds, from_text

LAST = 253_402_300_799


@settings(max_examples=300)
@given(st.integers(0, LAST))
def test_seconds_are_the_calendars(seconds: int) -> None:
    told = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert from_seconds(seconds) == told.isoformat()
    assert from_text(told.isoformat()) == (told.isoformat(), True)


@settings(max_examples=100)
@given(st.integers(86_400, LAST - 86_400), st.integers(-1439, 1439))
def test_a_zone_is_taken_off(seconds: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    told = datetime.fromtimestamp(seconds, zone)
    assert from_text(told.isoformat()) == (told.astimezone(UTC).isoformat(), True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2016-10-21 03:14:19.670631", "2016-10-21T03:14:19+00:00"),
        ("2015/03/17-18:40:25", "2015-03-17T18:40:25+00:00"),
        ("2024-02-29T23:59", "2024-02-29T23:59:00+00:00"),
        ("2016-12-31 23:59:60", "2016-12-31T23:59:59+00:00"),  # a leap second
    ],
)
def test_a_time_without_a_zone_says_so(text: str, told: str) -> None:
    assert from_text(text) == (told, False)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2023-02-29 00:00", "2023-13-01 00:00", "2023-01-01 24:00"),
        *("2023-01-01 00:75", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00"),
        *("20230101T0000", "2023-W01-1", "2023-01-01", "2023-01-01 00:00:61"),  # other ISO 8601
        "2023-01-01 00:00+24:00",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(NoTime):
        from_text(text)


@pytest.mark.parametrize("seconds", [-1.0, LAST + 1, 1e300, float("nan"), float("inf")])
def test_seconds_out_of_range_are_refused(seconds: float) -> None:
    with pytest.raises(NoTime):
        from_seconds(seconds)
