"""What is recorded is there once, whole, and as it was; in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from perfci.errors import UsageError
from perfci.history.store import OpenHistory, open_history
from perfci.model.run import Point, RecordedRun
from perfci.trend import SeriesKey
from tests.builders.recorded import HERE, THERE, change, in_order, recorded
from tests.history.postgres import Server

LATENCY = SeriesKey(HERE.key, "case_0[n=1]", "latency_p50")


@contextmanager
def recording_meanwhile(other: OpenHistory, run: RecordedRun) -> Iterator[None]:
    """Let another writer record ``run`` while a transaction is about half done."""
    left = [run]

    def record(_connection, _cursor, statement: str, *_rest: object) -> None:
        if "perfci_documents" in statement and left:
            assert other.record([left.pop()]) == 1

    event.listen(Engine, "after_cursor_execute", record)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", record)
    assert not left


def test_a_run_recorded_twice_is_there_once(place: str) -> None:
    with open_history(place) as history:
        assert history.record([recorded(1), recorded(2)]) == 2
        before = list(history.export())
        assert history.record([recorded(2), recorded(1), recorded(1, subject="another")]) == 0
        assert list(history.export()) == before
    with open_history(place) as history:
        assert history.record([recorded(1), recorded(3)]) == 1
        assert [run.id for run in history.runs()] == [recorded(n).id for n in (1, 2, 3)]


def test_every_field_comes_back_as_it_was(place: str) -> None:
    odd = recorded(
        4,
        position=None,
        committed_at="",
        sha="",
        subject="'; DROP TABLE perfci_runs; -- % \\ \x1b[31m",
        points=(
            Point('größe[n="1"]', "own", "tokens/s", 0.1 + 0.2, "higher"),
            Point('größe[n="1"]', "graphs", "count", 0.0),
        ),
        environment=replace(HERE, facts={**HERE.facts, "note_kernel": "6.1\n"}),
        source_hashes={},
        failed={},
    )
    runs = [recorded(1), recorded(2, THERE), recorded(3, points=()), odd]
    with open_history(place) as history:
        history.record(runs)
    with open_history(place) as history:
        back = {run.id: in_order(run) for run in history.recorded_runs()}
    assert back == {run.id: in_order(run) for run in runs}


def test_all_series_are_loaded_with_their_runs_facts_and_sources(place: str) -> None:
    runs = [recorded(n, cases=2) for n in (3, 1, 2)] + [recorded(2, THERE, cases=1)]
    runs[1] = replace(runs[1], source_hashes={"case_0[n=1]": "old"})
    with open_history(place) as history:
        history.record(runs)
        loaded = history.load_arrays()
    assert loaded.environments == {HERE.key: HERE.facts, THERE.key: THERE.facts}
    ids = [run.header.id for run in loaded.runs]
    assert sorted(ids) == sorted(run.id for run in runs)
    assert len(loaded.series) == 6
    (latency,) = (one for one in loaded.series if one.key == LATENCY)
    assert (latency.unit, latency.direction) == ("s", "lower")
    found = {ids[run]: value for run, value in zip(latency.runs, latency.values, strict=True)}
    assert found == {run.id: run.points[0].value for run in runs[:3]}
    (other,) = (
        one for one in loaded.series if one.key.environment == THERE.key and one.unit == "s"
    )
    assert [ids[run] for run in other.runs] == [recorded(2, THERE).id]
    hashes = [loaded.sources[source] for source in loaded.source_of_run]
    first, second, third = (hashes[ids.index(recorded(n).id)] for n in (1, 2, 3))
    assert second["case_0[n=1]"] == third["case_0[n=1]"] != first["case_0[n=1]"]
    assert "case_1[n=1]" not in first


def test_a_run_recorded_while_all_are_loaded_is_in_the_next_load_whole(postgres: Server) -> None:
    place = postgres.database("loading")
    with open_history(place) as history, open_history(place) as other:
        history.record([recorded(1)])
        with recording_meanwhile(other, recorded(2, cases=3)):
            loaded = history.load_arrays()
        assert len(other.runs()) == 2
        assert [len(one.values) for one in loaded.series] == [1] * 4
        assert len(loaded.runs) == 1
        assert len(history.load_arrays().series) == 6


def test_what_was_measured_or_failed_is_told_by_commit(place: str) -> None:
    with open_history(place) as history:
        history.record([recorded(1, cases=1), recorded(2, THERE)])
        assert history.measured(HERE.key) == {
            (recorded(1).sha, "case_0[n=1]"),
            (recorded(1).sha, "broken"),
        }
        assert history.measured("elsewhere") == frozenset()
        assert [run.id for run in history.runs(environment=THERE.key)] == [recorded(2, THERE).id]


def test_an_acknowledgement_outlives_the_next_analysis(place: str) -> None:
    with open_history(place) as history:
        history.remember([change(1), change(2)])
        assert history.acknowledge(change(1).id, "Meant: a safer algorithm.") == change(1).id
        moved = change(1, sha_before="f" * 40, first_seen_at="2027-01-01T00:00:00+00:00")
        history.remember([moved, change(2)])
        first, second = history.known_changes()
    assert first == change(
        1, sha_before="f" * 40, acknowledged=True, note="Meant: a safer algorithm."
    )
    assert second == change(2)


def test_an_acknowledgement_is_taken_back_and_no_report_that_began_before_brings_it_again(
    place: str,
) -> None:
    with open_history(place) as history:
        history.remember([change(1)])
        history.acknowledge(change(1).id, "Meant.")
        (before,) = history.known_changes()
        assert history.acknowledge(change(1).id[:6], undo=True) == change(1).id
        assert history.known_changes() == (change(1),)
        assert before.acknowledged


def test_a_change_is_acknowledged_by_the_beginning_of_its_id(place: str) -> None:
    with open_history(place) as history:
        history.remember([change(id="abcd1111"), change(id="abcd2222")])
        assert history.acknowledge("abcd2") == "abcd2222"
        for wrong in ("abcd", "abc", "ffff", ""):
            with pytest.raises(UsageError, match="id"):
                history.acknowledge(wrong)
        assert [one.acknowledged for one in history.known_changes()] == [False, True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": (Point("a", "m", "s", float("nan")),)},
        {"points": (Point("a", "m", "s", 1.0), Point("a", "m", "s", 2.0))},
        {"subject": "a\0b"},
        {"points": (Point("\ud800", "m", "s", 1.0),)},
        {"id": ""},
        {"measured_at": ""},
        {"measured_at": "not a time"},
        {"position": 2**70},
        {"position": -1},
    ],
)
def test_a_run_that_could_not_be_read_back_is_refused_before_anything_is_written(
    quick_folder, wrong
) -> None:
    with open_history(str(quick_folder / "h.sqlite")) as history:
        with pytest.raises(UsageError, match="can't be recorded"):
            history.record([recorded(1), recorded(2, **wrong)])
        assert history.runs() == ()
