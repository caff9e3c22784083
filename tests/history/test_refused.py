"""A server that refuses a connection is said in its own words, and no password is shown."""

from __future__ import annotations

import pytest

from perfci.errors import OutsideError
from perfci.history.store import open_history
from tests.history.postgres import PASSWORD, Server


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pa%3Ass", "wrong-word"), "password authentication failed"),
        (("pa%3Ass%2Fwo%40rd", ""), "no password supplied"),
        (("/postgres?", "/no_such_database?"), "does not exist"),
        (("?host", "?sslmode=no-such-mode&host"), "invalid sslmode value"),
        (("?host", "?port=99999&host"), "invalid port number"),
    ],
)
def test_a_refusal_is_told_in_the_servers_own_words(
    postgres: Server, change: tuple[str, str], said: str
) -> None:
    address = postgres.url()
    assert change[0] in address
    with (
        pytest.raises(OutsideError, match=said) as caught,
        open_history(address.replace(*change)),
    ):
        pass
    assert caught.value.slug == "history-failed"
    assert "wrong-word" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
