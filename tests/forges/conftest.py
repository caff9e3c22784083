"""A receiver that no proxy stands before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.forges.receiver import Receiver


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's proxy out of the way to 127.0.0.1."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook's server."""
    one = Receiver()
    yield one
    one.close()
