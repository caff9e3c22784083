"""A PostgreSQL server that goes away while a run is written: written again, or said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, event

from perfci.errors import OutsideError
from perfci.history import database
from perfci.history.store import open_history
from tests.builders.recorded import in_order, recorded
from tests.history.postgres import Server


@contextmanager
def at_the_last_statement(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` once, when a run's last rows are written and not committed."""
    done = []

    def after(_connection, _cursor, statement: str, *_rest: object) -> None:
        if statement.startswith("INSERT INTO perfci_runs") and not done:
            done.append(True)
            act()

    event.listen(Engine, "after_cursor_execute", after)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", after)
    assert done


def test_a_connection_lost_in_mid_write_is_made_anew_and_the_run_is_there_once(
    postgres: Server,
) -> None:
    place = postgres.database("cut")
    with open_history(place) as history:
        history.record([recorded(1)])
        with at_the_last_statement(
            lambda: postgres.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'perfci %'",
            )
        ):
            assert history.record([recorded(2), recorded(3)]) == 2
        assert [in_order(run) for run in history.recorded_runs()] == [
            in_order(recorded(n)) for n in (1, 2, 3)
        ]


def test_a_server_that_is_started_again_gets_the_run(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []

    def back(pause: float) -> None:
        paused.append(pause)
        if len(paused) == 2:
            own_server.start()

    monkeypatch.setattr(database, "time", SimpleNamespace(sleep=back))
    with open_history(own_server.database("again")) as history:
        history.record([recorded(1)])
        with at_the_last_statement(lambda: own_server.stop("immediate")):
            assert history.record([recorded(2)]) == 1
        assert len(history.runs()) == 2
    assert tuple(paused) == database.PAUSES_S[:2]


def test_a_server_that_stays_away_is_said_and_no_half_run_is_left(
    own_server: Server, monkeypatch
) -> None:
    monkeypatch.setattr(database, "PAUSES_S", (0.01, 0.02))
    place = own_server.database("gone")
    with open_history(place) as history:
        history.record([recorded(1)])
        with (
            at_the_last_statement(lambda: own_server.stop("immediate")),
            pytest.raises(OutsideError, match="can't be used") as caught,
        ):
            history.record([recorded(2)])
    assert "recording twice is safe" in caught.value.advice
    assert "pa:ss" not in str(caught.value)
    with pytest.raises(OutsideError, match="can't be used"), open_history(place):
        pass
    own_server.start()
    with open_history(place) as history:
        assert [in_order(run) for run in history.recorded_runs()] == [in_order(recorded(1))]
        assert history.record([recorded(2)]) == 1
