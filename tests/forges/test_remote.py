"""What a server says of waiting, however odd, and what an address is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.forges.http import address_of, redirected, requested_wait

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT
_PARTS = st.sampled_from(
    ["Tue,", "14", "Nov", "2023", "99999", "22:13:50", "9" * 400, "99:99:99", "GMT", "-0000",
     "+9999", "-99999999999", "²", "٣", "0", ",", ":", ";", "(", ")", "PM"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        (" 7 ", 7.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tuesday, 14-Nov-23 22:13:50 GMT", 30.0),
        ("Tue Nov 14 22:13:50 2023", 30.0),  # C's asctime: in GMT, too
        ("Tue, 14 Nov 2023 00:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-7", None),
        ("1e3", None),
    ],
)
def test_a_wait_is_asked_for_in_seconds_or_by_a_date(after: str, wait: float | None) -> None:
    assert requested_wait(after, NOW) == wait


@given(st.one_of(st.text(), st.lists(_PARTS).map(" ".join)))
def test_whatever_is_asked_for_is_a_time_that_can_be_or_nothing(after: str) -> None:
    wait = requested_wait(after, NOW)
    assert wait is None or (wait >= 0.0 and math.isfinite(wait))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://x",
        "https:///x",
        "https://a:b/",
        "https://[a",
        "http://a..b/",
        "http://.a/",
        "http://%00/",
        "http://a\\b/",
        f"http://{'a' * 64}.example/",
        "http://[::1::]/",
    ],
)
def test_what_is_no_address_has_no_parts(url: str) -> None:
    assert address_of(url) is None


@pytest.mark.parametrize(
    "host", ["hooks.example", "hooks.example.", "my_host", "127.0.0.1", "bücher.example", "::1"]
)
def test_an_address_has_its_host(host: str) -> None:
    parts = address_of(f"https://{f'[{host}]' if ':' in host else host}:8443/services")
    assert parts is not None
    assert (parts.hostname, parts.port) == (host, 8443)


@given(st.text(), st.sampled_from(["http://", "https://", "http://["]))
def test_whatever_is_given_as_an_address_is_one_or_none(url: str, scheme: str) -> None:
    address_of(f"{scheme}{url}")


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("/other?page=2", "https://api.example/other?page=2"),
        ("https://api.example:443/other", "https://api.example:443/other"),
        ("http://api.example/other", None),
        ("https://api.example:8443/other", None),
        ("https://api.example.evil/other", None),
        ("//evil.example/other", None),
        ("https://api.example:x/", None),
        ("http://[", None),
    ],
)
def test_a_redirect_leads_nowhere_but_to_the_same_server(
    location: str, address: str | None
) -> None:
    assert redirected("https://api.example/repos", location) == address
