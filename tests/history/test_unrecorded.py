"""What a history doesn't take is kept, unless no history would."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.errors import OutsideError, PerfciError, UsageError
from perfci.history.interchange import from_lines, keeping
from perfci.history.store import open_history
from tests.builders.recorded import recorded
from tests.history.refusing_server import refusing


@pytest.mark.parametrize(
    ("said", "error", "slug"),
    [
        ("password authentication failed", UsageError, "history-refused"),
        # in another language it is not known for a refusal: it may be a server that starts
        ("Passwort-Authentifizierung fehlgeschlagen", OutsideError, "history-lost"),
    ],
)
def test_a_password_that_was_changed_meanwhile_loses_nothing(
    tmp_path: Path, said: str, error: type[PerfciError], slug: str
) -> None:
    with (
        refusing("FATAL", "28P01", said) as server,
        pytest.raises(error) as caught,
        keeping([recorded(1)], tmp_path),
        open_history(server.url) as history,
    ):
        history.record([recorded(1)])
    assert caught.value.slug == slug
    (kept,) = (tmp_path / "unrecorded").iterdir()
    assert f"perfci history import {kept}" in caught.value.advice
    (back,) = from_lines(kept.read_bytes().splitlines(), "x")
    assert back == recorded(1)


def test_a_disk_that_is_full_for_the_history_and_for_what_is_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "unrecorded").write_text("no folder")
    with (
        pytest.raises(OutsideError, match=r"full\. What was measured is in no history") as caught,
        keeping([recorded(1)], tmp_path),
    ):
        raise OutsideError("history-lost", "the disk is full", "Make room.")
    assert str(tmp_path / "unrecorded") in caught.value.advice
    assert caught.value.advice.endswith("Make room.")
