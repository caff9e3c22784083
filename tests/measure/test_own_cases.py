"""What base's own benchmark files have, where base's own tree can't be prepared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from perfci.errors import MeasureError, PerfciError, UnbuiltCommit, UsageError
from perfci.measure.discovery import cases_of_base
from tests.verdict.workers import case


def raising(error: PerfciError) -> Callable[[], AbstractContextManager[object]]:
    def check_out() -> AbstractContextManager[object]:
        raise error

    return check_out


@pytest.mark.parametrize(
    "error",
    [
        UnbuiltCommit("build-failed", "it doesn't build", "Look."),
        MeasureError("environment-not-made", "no environment", "Look."),
        UsageError("configuration", "a wrong key", "Mend it."),
    ],
    ids=lambda error: error.slug,
)
def test_nothing_is_known_of_base_where_its_own_tree_cannot_be_prepared(
    error: PerfciError,
) -> None:
    assert cases_of_base(None, raising(error), None, 0.0)(case())  # type: ignore[arg-type]
