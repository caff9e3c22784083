"""A receiver that no proxy stands before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.telling.receiver import Receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A webhook's server."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    one = Receiver()
    yield one
    one.close()
