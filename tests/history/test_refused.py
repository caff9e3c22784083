"""A server that lets nobody in is told at once, and one that is merely away is tried again."""

from __future__ import annotations

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.history import database
from perfci.history.address import parse_address
from perfci.history.store import open_history
from tests.history.postgres import PASSWORD, Server
from tests.history.refusing_server import refusing


def write_nothing(address: str) -> None:
    """Begin to write, which is tried again over a connection that was lost."""
    opened = database.Database(parse_address(address))
    try:
        opened.writing(lambda connection: None)
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pa%3Ass", "wrong-word"), "password authentication failed"),
        (("pa%3Ass%2Fwo%40rd", ""), "no password supplied"),
        (("//perfci", "//nobody-here"), "password authentication failed"),
        (("/postgres?", "/no_such_database?"), "does not exist"),
        (("?host", "?sslmode=no-such-mode&host"), "invalid sslmode value"),
        (("?host", "?no_such_option=1&host"), "invalid connection option"),
        (("?host", "?port=99999&host"), "invalid port number"),
    ],
)
def test_what_a_server_or_libpq_refuses_is_a_usage_error(
    postgres: Server, change: tuple[str, str], said: str
) -> None:
    address = postgres.url()
    assert change[0] in address
    with (
        pytest.raises(UsageError, match=said) as caught,
        open_history(address.replace(*change)),
    ):
        pass
    assert caught.value.slug == "history-refused"
    assert "wrong-word" not in str(caught.value)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("severity", "code", "said", "password"),
    [
        ("FATAL", "28P01", 'password authentication failed for user "perfci"', True),
        ("FATAL", "3D000", 'database "perf" does not exist', True),
        ("FATAL", "28000", 'no pg_hba.conf entry for host "127.0.0.1"', False),
        ("FATAL", "28000", 'role "perfci" does not exist', False),
        ("FATAL", "42501", 'permission denied for database "perf"', True),
    ],
)
def test_a_refusal_is_told_in_the_servers_own_words_and_not_tried_again(
    severity: str, code: str, said: str, password: bool
) -> None:
    with refusing(severity, code, said, password=password) as server:
        with pytest.raises(UsageError) as caught:
            write_nothing(server.url)
        assert server.asked == 1
    assert caught.value.slug == "history-refused"
    assert said in caught.value.message
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("severity", "said", "password"),
    [
        ("FATAL", "the database system is starting up", False),
        ("ВАЖНО", "система баз данных запускается", False),
        ("FATAL", "sorry, too many clients already", True),
        ("FATAL", 'too many connections for role "perfci"', True),
        ("ВАЖНО", "пользователь не прошёл проверку подлинности", True),
    ],
)
def test_a_server_that_is_not_ready_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, severity: str, said: str, password: bool
) -> None:
    monkeypatch.setattr(database, "PAUSES_S", (0.0, 0.0))
    with refusing(severity, "57P03", said, password=password) as server:
        with pytest.raises(OutsideError) as caught:
            write_nothing(server.url)
        assert server.asked == 3
    assert caught.value.slug == "history-lost"
    assert said in caught.value.message
