"""Which changes a benchmark should exercise, and which it need not."""

from __future__ import annotations

import pytest

from perfci.measure.checkout.trees import is_source


@pytest.mark.parametrize("name", ["lib/a.py", "tools/attention.py"])
def test_python_is_a_source(name: str) -> None:
    assert is_source(name)


@pytest.mark.parametrize(
    "name", ["setup.py", "uv.lock", "docs/conf.py", "tests/a.py", "lib/a_test.py", "weights.bin"]
)
def test_what_no_benchmark_imports_is_none(name: str) -> None:
    assert not is_source(name)
