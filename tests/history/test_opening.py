"""Opening a history: made once, and refused with words where it is wrong."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import create_engine, text

from perfci.errors import DamagedFile, OutsideError, UsageError
from perfci.history import database
from perfci.history.address import parse_address
from perfci.history.store import open_history
from tests.builders.recorded import recorded
from tests.history.postgres import PASSWORD, Server

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


def make(place: str, runs: int = 1) -> None:
    with open_history(place) as history:
        history.record([recorded(number) for number in range(1, runs + 1)])


def look_over(place: str) -> None:
    with open_history(place) as history:
        history.load_arrays()
        list(history.export())


@pytest.mark.parametrize("number", ["99", ""])
def test_a_history_of_another_schema_is_refused_and_left_as_it_is(place: str, number: str) -> None:
    make(place)
    _run(place, "DELETE FROM perfci_schema")
    if number:
        _run(place, f"INSERT INTO perfci_schema (number) VALUES ({number})")
    with pytest.raises(UsageError, match="the schema") as caught, open_history(place):
        pass
    assert "perfci history import" in caught.value.advice
    _run(place, "DELETE FROM perfci_schema")
    _run(place, f"INSERT INTO perfci_schema (number) VALUES ({database.SCHEMA})")
    with open_history(place) as history:
        assert len(history.runs()) == 1


def test_a_missing_history_is_made_only_for_who_records(place: str) -> None:
    with (
        pytest.raises(UsageError, match="history not found"),
        open_history(place, create=False),
    ):
        pass
    assert not Path(place).exists()
    make(place)
    with open_history(place, create=False) as history:
        assert len(history.runs()) == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda content: b"", "empty"),
        (lambda content: b"not a database" * 100, "not a database"),
        (lambda content: content[: len(content) // 2], "malformed"),
        (lambda content: content[:1000] + bytes(len(content) - 1000), "malformed"),
        (lambda content: content[:5000] + Random(5000).randbytes(len(content) - 5000), ""),
    ],
)
def test_a_damaged_file_is_named_and_never_taken_for_an_empty_history(
    tmp_path: Path, damage, said: str
) -> None:
    place = tmp_path / "history.sqlite"
    make(str(place), runs=30)
    place.write_bytes(damage(place.read_bytes()))
    before = place.read_bytes()
    with pytest.raises(DamagedFile) as caught:
        look_over(str(place))
    assert str(place) in caught.value.message
    assert said in caught.value.message
    assert place.read_bytes() == before


def test_points_that_no_perfci_wrote_are_damage(tmp_path: Path) -> None:
    place = str(tmp_path / "history.sqlite")
    make(place)
    for packed in ("x'000000'", "zeroblob(8)", "zeroblob(400)"):
        _run(place, f"UPDATE perfci_runs SET packed = {packed}")
        with open_history(place) as history:
            with pytest.raises(DamagedFile, match="cut short"):
                history.load_arrays()
            with pytest.raises(DamagedFile, match="cut short"):
                list(history.recorded_runs())


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM perfci_documents",
        "UPDATE perfci_documents SET content = '{'",
        "UPDATE perfci_documents SET content = '[1]'",
    ],
)
def test_missing_and_damaged_documents_are_damage(tmp_path: Path, damage: str) -> None:
    place = str(tmp_path / "history.sqlite")
    make(place)
    _run(place, damage)
    with open_history(place) as history:
        with pytest.raises(DamagedFile, match="document"):
            history.load_arrays()
        with pytest.raises(DamagedFile, match="document"):
            list(history.recorded_runs())


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "other.sqlite"
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE customers (name)")
    connection.close()
    with pytest.raises(UsageError, match="customers"), open_history(str(place)):
        pass
    with pytest.raises(UsageError, match="is not a file"), open_history(str(tmp_path)):
        pass


def test_processes_that_open_a_new_history_make_one(place: str) -> None:
    program = (
        "import sys\nfrom tests.builders.recorded import recorded\n"
        "from perfci.history.store import open_history\n"
        "with open_history(sys.argv[1]) as history:\n"
        "    print(history.record([recorded(int(sys.argv[2]))]))\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, place, str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(1, 4)
    ]
    assert [process.communicate()[0] for process in started] == ["1\n"] * 3
    with open_history(place) as history:
        assert len(history.runs()) == 3


def test_a_locked_history_is_waited_for_and_then_said(quick_folder: Path) -> None:
    place = quick_folder / "history.sqlite"
    make(str(place))
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDER,
            str(place),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdout.readline()
    with (
        pytest.raises(OutsideError, match="locked") as caught,
        open_history(str(place), wait_s=0.3) as history,
    ):
        history.record([recorded(2)])
    assert "recording twice is safe" in caught.value.advice
    release = threading.Timer(0.3, holder.stdin.close)
    release.start()
    with open_history(str(place)) as history:
        assert history.record([recorded(2)]) == 1
    release.join()
    assert holder.wait() == 0
    holder.stdout.close()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_history_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    place = tmp_path / "history.sqlite"
    make(str(place))
    place.chmod(0o444)
    with open_history(str(place)) as history:
        assert len(history.runs()) == 1
        with pytest.raises(OutsideError, match="readonly"):
            history.record([recorded(2)])


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://me:geheim@host/perf", "not `mysql`"),
        ("postgresql+asyncpg://me:geheim@host/perf", "not `postgresql+asyncpg`"),
        ("postgresql://me:ge@heim@host/perf", "an @"),
        ("postgresql://me:geheim@host:port/perf", "can't be read"),
        ("postgresql://me:geheim@host", "no database"),
        ("sqlite:///history.sqlite", "not `sqlite`"),
        ("://", "can't be read"),
    ],
)
def test_a_wrong_address_is_refused_without_repeating_its_password(address: str, said: str) -> None:
    with pytest.raises(UsageError) as caught, open_history(address):
        pass
    assert said in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "heim" not in str(caught.value)


def test_a_password_is_never_shown(postgres: Server) -> None:
    wrong = postgres.url().replace("pa%3Ass", "wrong-word")
    for address, secret in (
        (wrong, "wrong-word"),
        (postgres.url("no_such_database"), PASSWORD),
        (f"postgresql://perfci@/postgres?host={postgres.folder}&password=wrong-word", "wrong-word"),
        (f"postgresql://perfci:wrong-word@/postgres?host={postgres.folder}/none", "wrong-word"),
    ):
        with pytest.raises((UsageError, OutsideError)) as caught, open_history(address):
            pass
        assert secret not in str(caught.value)
        assert "postgresql://perfci" in str(caught.value)
    with open_history(postgres.database("shown")) as history:
        assert history.shown.startswith("postgresql://perfci:***@")


def _run(place: str, statement: str) -> None:
    engine = create_engine(parse_address(place).url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()
