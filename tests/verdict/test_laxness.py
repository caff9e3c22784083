"""What of a policy lets more pass than base's is named, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.verdict.policy import Policy, default_policy, laxer_than

BASE = default_policy()


def with_metric(name: str, **changes: object) -> Policy:
    return replace(BASE, metrics={**BASE.metrics, name: replace(BASE.metrics[name], **changes)})


@pytest.mark.parametrize(
    ("here", "words"),
    [
        (with_metric("latency_p50", threshold=3.0), "latency_p50 threshold 5 % → 300 %"),
        (with_metric("latency_p50", gate="warn"), "latency_p50 gate fail → warn"),
        (
            with_metric("latency_p50", undecided="pass"),
            "latency_p50 undecided inconclusive → pass",
        ),
        (with_metric("graph_breaks", threshold=4.0), "graph_breaks threshold 0 → 4"),
        (
            replace(BASE, thresholds={"f": {"latency_p50": 4.0}}),
            "f latency_p50 threshold 5 % → 400 %",
        ),
        (replace(BASE, alpha=0.001), "alpha 0.01 → 0.001"),
        (replace(BASE, allow_broken=("f", "g*")), "allow_broken f, g*"),
    ],
)
def test_what_lets_more_pass_is_named_and_its_opposite_is_not(here: Policy, words: str) -> None:
    assert laxer_than(BASE, here, ["f"]) == (words,)
    assert laxer_than(here, BASE, ["f"]) == ()


def test_a_strict_policy_that_is_so_no_more_is_named() -> None:
    assert laxer_than(replace(BASE, strict=True), BASE, []) == ("strict true → false",)


def test_a_benchmarks_stricter_threshold_that_went_is_named() -> None:
    strict = replace(BASE, thresholds={"f": {"latency_p50": 0.01}})
    assert laxer_than(strict, BASE, ["f"]) == ("f latency_p50 threshold 1 % → 5 %",)


def test_thresholds_of_new_benchmarks_and_of_what_only_informs_are_not_named() -> None:
    new = replace(BASE, thresholds={"new": {"latency_p50": 4.0}})
    assert laxer_than(BASE, new, ["f"]) == ()
    assert laxer_than(BASE, with_metric("latency_mean", threshold=9.0), ["f"]) == ()
