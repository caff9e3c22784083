"""What a benchmark's decorator says is read from its file, as it may be written there."""

from __future__ import annotations

import pytest

from perfci.measure.selection import benchmarks_of


@pytest.mark.parametrize(
    ("written", "thresholds"),
    [
        ('"3%"', {"latency_p50": 0.03}),
        ("0.03", {"latency_p50": 0.03}),
        ('"much"', {}),
        ("computed()", {}),
    ],
)
def test_a_decorators_threshold_is_read(written: str, thresholds: dict[str, float]) -> None:
    source = (
        "import perfci\n\n"
        f'@perfci.benchmark(thresholds={{"latency_p50": {written}}})\n'
        "def case():\n    return len\n"
    )
    assert benchmarks_of(source.encode())["case"].thresholds == thresholds
