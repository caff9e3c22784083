"""Golden files: what the renderers gave last time, refreshed by one flag."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent.parent / "data" / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file, or write it."""

    def compare(name: str, text: str) -> None:
        path = _FOLDER / name
        if request.config.getoption("--refresh-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
