"""The session's own folder: nothing is left of one that can't be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.errors import OutsideError
from perfci.measure.checkout.disk import scratch_folder


def test_a_session_without_room_for_its_folder_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _size: "1")
    (tmp_path / "session-1").write_text("no room")
    with pytest.raises(OutsideError, match="can't be written"), scratch_folder(tmp_path):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["session-1"]
