"""From raw samples to one value per metric."""

from __future__ import annotations

import array
import base64
import math
from dataclasses import replace
from itertools import islice

import pytest

from perfci.model.measuring import WorkerOutput
from perfci.model.worker import Measurement, WorkerBlock
from perfci.stats.quantile import samples_needed
from perfci.verdict.reduction import reduce


def encoded(samples: list[int]) -> str:
    return base64.b64encode(array.array("q", samples).tobytes()).decode()


def raw(samples: list[int], *blocks: WorkerBlock, **fields: object) -> Measurement:
    blocks = blocks or (block(1, len(samples)),)
    left = iter(samples)
    measured = Measurement(
        samples_ns=tuple(encoded(list(islice(left, b.bursts * b.samples))) for b in blocks),
        blocks=blocks,
        first_call_s=2.0,
        values={"cold_start": 1.5},
    )
    return replace(measured, **fields)


def block(bursts: int, samples: int, *taken: float, reason: str = "") -> WorkerBlock:
    """Return a block; of the last bursts' core, ``taken`` s were taken."""
    run_delay = (0.0,) * (bursts - len(taken)) + taken
    return WorkerBlock(bursts, samples, 0.0, 0.02, run_delay, set_aside=reason)


def reduced(measurement: Measurement, *, cold_cache: bool = False) -> WorkerOutput:
    return reduce(measurement, case="c", side="head", round_number=1, cold_cache=cold_cache)


def test_latencies_come_in_seconds() -> None:
    output = reduced(raw([1_000_000] * 500 + [3_000_000] * 500))
    assert output.values["latency_mean"] == pytest.approx(0.002)
    assert output.values["latency_p99"] == pytest.approx(0.003)
    assert output.values["cold_start"] == 1.5
    assert output.samples == 1000


def test_the_spread_and_the_slowest_of_the_calls_inform() -> None:
    values = reduced(raw([1_000_000, 2_000_000, 6_000_000])).values
    assert values["latency_sd"] == pytest.approx(math.sqrt(7e-6))  # (4 + 1 + 9) / 2 ms²
    assert values["latency_max"] == pytest.approx(0.006)
    alone = reduced(raw([1_000_000])).values
    assert "latency_sd" not in alone
    assert alone["latency_max"] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("first_calls", "early"),
    [
        ((9.0, 0.251, 0.001), 0.25),  # the first call is the cold start's
        ((0.001, 0.001, 0.151, 0.001, 0.101), 0.25),
        ((0.001,) * 39 + (0.251,), 0.25),
        ((0.001, *(0.0019,) * 39), None),  # still getting faster
        ((0.001, 0.005, 0.001), None),  # too short to tell
        ((9.0,), None),
        ((), None),
    ],
)
def test_what_a_later_call_than_the_first_does_once_is_the_early_calls(
    first_calls: tuple[float, ...], early: float | None
) -> None:
    output = reduced(replace(raw([1_000_000] * 100), first_calls=first_calls))
    assert output.values.get("early_calls") == (early and pytest.approx(early))


@pytest.mark.parametrize("compiled", [{"compiled": True}, {"values": {"graphs": 1.0}}])
def test_what_is_compiled_into_an_empty_cache_is_no_early_call(compiled: dict[str, object]) -> None:
    measured = replace(raw([1_000_000] * 100), first_calls=(1.0, 2.0), **compiled)
    cold, cached = (reduced(measured, cold_cache=cold) for cold in (True, False))
    assert cold.missing["early_calls"] == "the compile cache was empty"
    assert cached.values["early_calls"] == pytest.approx(1.999)


def test_a_worker_carries_the_number_of_its_fork_server() -> None:
    output = reduce(raw([1]), case="c", side="head", round_number=1, cold_cache=False, server=2)
    assert output.server == 2


def test_a_percentile_with_too_few_samples_is_missing_and_says_how_many_it_needs() -> None:
    output = reduced(raw([1_000_000] * 30))
    assert "latency_p99" not in output.values
    assert str(samples_needed(0.99)) in output.missing["latency_p99"]
    assert "jitter" not in output.values


def test_a_burst_whose_core_was_taken_is_set_aside_and_counted() -> None:
    output = reduced(raw([10, 10, 10, 10, 9000, 9000], block(3, 2, 17_970e-9)))
    assert output.bursts_set_aside == 1
    assert output.values["latency_mean"] == pytest.approx(10e-9)


@pytest.mark.parametrize(("slow_call", "set_aside"), [(9020, 0), (8021, 1)])
def test_a_burst_that_is_slow_on_its_core_counts_though_its_core_was_taken_too(
    slow_call: int, set_aside: int
) -> None:
    output = reduced(raw([10, 10, 10, 10, 10, slow_call], block(3, 2, 8000e-9)))
    assert output.bursts_set_aside == set_aside
    assert output.values["latency_max"] == pytest.approx((10 if set_aside else slow_call) / 1e9)


def test_a_worker_also_carries_what_its_tail_is_with_the_delayed_bursts() -> None:
    output = reduced(raw([10, 10, 10, 10, 9000, 9000], block(3, 2, 17_970e-9)))
    assert output.bursts_delayed == 1
    assert output.with_delayed["latency_mean"] == pytest.approx(18040 / 6 * 1e-9)
    assert "latency_p50" not in output.with_delayed


def test_a_throttled_burst_is_not_among_the_delayed_ones() -> None:
    capped = block(1, 2, reason="power cap")
    output = reduced(raw([10, 10, 90, 90, 10, 10], block(1, 2), capped, block(1, 2)))
    assert (output.bursts_set_aside, output.bursts_delayed) == (1, 0)
    assert output.with_delayed == {}


def test_where_most_bursts_are_disturbed_none_is_set_aside_and_they_are_counted() -> None:
    blocks = block(2, 2, 1e-6, 1e-6), block(1, 2)
    output = reduced(raw([10, 10, 20, 20, 30, 30], *blocks))
    assert (output.bursts_set_aside, output.bursts_disturbed) == (0, 2)
    assert output.disturbance == "core taken"
    assert output.samples == 6


def test_half_of_the_bursts_may_be_set_aside() -> None:
    output = reduced(raw([10, 10, 20, 20], block(1, 2, 1e-6), block(1, 2)))
    assert (output.bursts_set_aside, output.bursts_disturbed) == (1, 0)
    assert output.disturbance == "core taken"


def test_delays_of_a_block_that_a_quota_stopped_are_throttled_and_not_the_code_s() -> None:
    slow = replace(block(4, 1, 0.004, 0.004, 0.004), throttled=0.005)
    output = reduced(raw([1_000_000, 9_000_000, 9_000_000, 9_000_000], slow))
    assert (output.disturbance, output.bursts_disturbed) == ("throttled by a processor quota", 3)
    assert output.bursts_delayed == 0
    hardly = replace(slow, throttled=0.001)  # too little to disturb a burst: other programs did
    assert reduced(raw([1_000_000, 9_000_000] * 2, hardly)).disturbance == "core taken"


def test_the_commonest_disturbance_stands_for_all() -> None:
    capped = block(1, 1, reason="power cap")
    output = reduced(raw([10, 20, 30], capped, block(1, 1, 1e-6), capped))
    assert (output.bursts_disturbed, output.disturbance) == (3, "power cap")


def test_undisturbed_bursts_have_no_disturbance() -> None:
    output = reduced(raw([10] * 10))
    assert (output.bursts_set_aside, output.bursts_disturbed, output.disturbance) == (0, 0, "")


def test_compile_time_is_first_call_minus_warm_median_and_knows_its_cache() -> None:
    measurement = raw([1_000_000_000] * 5, compiled=True)
    cold, warm = reduced(measurement, cold_cache=True), reduced(measurement)
    assert cold.values["compile_time"] == pytest.approx(1.0)
    assert "compile_time" not in warm.values
    assert warm.values["compile_time_cached"] == pytest.approx(1.0)


def test_what_the_worker_says_of_a_device_it_had_not_is_kept() -> None:
    output = reduced(raw([10] * 10, missing={"device_time_p50": "it ran on the host"}))
    assert "device_time_p50" not in output.values
    assert output.missing["device_time_p50"] == "it ran on the host"


def test_device_samples_are_reduced_beside_the_wall_time() -> None:
    output = reduced(raw([1000] * 10, device_samples_ns=(encoded([400] * 10),)))
    assert output.values["device_time_p50"] == pytest.approx(400e-9)


def test_throughput_is_items_over_mean_latency() -> None:
    assert reduced(raw([1_000_000] * 10, items=16)).values["throughput"] == pytest.approx(16_000)


def test_each_burst_has_its_median_and_none_where_it_was_set_aside() -> None:
    output = reduced(raw([10, 20, 90, 7, 7, 7, 40, 40], block(2, 3, 1e-8), block(1, 2)))
    assert output.bursts == {"latency_p50": pytest.approx((20e-9, None, 40e-9))}


def test_a_tenth_of_a_bursts_time_may_be_taken() -> None:
    output = reduced(raw([100] * 6, block(2, 3, 29e-9, 31e-9)))
    assert output.bursts_set_aside == 1


def test_samples_of_other_blocks_than_the_parent_ordered_are_refused() -> None:
    measured = raw([10, 10, 20], block(1, 2), block(1, 1))
    with pytest.raises(ValueError, match="longer"):
        reduced(replace(measured, samples_ns=measured.samples_ns[:1]))
    with pytest.raises(ValueError, match="2 samples in 1 bursts of 3"):
        reduced(replace(measured, blocks=(block(1, 3), block(1, 1))))
    with pytest.raises(ValueError, match="shorter"):
        reduced(replace(measured, blocks=(WorkerBlock(1, 2, 0.0, 0.02), block(1, 1))))


def observed(times: list[int], *blocks: WorkerBlock) -> WorkerOutput:
    return reduced(
        raw([1_000_000] * 4, *blocks, observed_ns={"time_to_first_token": encoded(times)})
    )


def test_what_was_observed_of_calls_is_that_of_the_bursts_that_count() -> None:
    led_in = replace(block(2, 2, 0.02), lead_ins=(1, 1))
    output = observed([9_000_000, 2_000_000, 4_000_000, 9_000_000, 7_000_000, 7_000_000, 1], led_in)
    assert output.values["time_to_first_token"] == pytest.approx(0.003)
    assert output.bursts["time_to_first_token"] == (pytest.approx(0.003), None)


@pytest.mark.parametrize(
    ("leading", "reason", "excess"),
    [(0.012, "", 3.0), (0.006, "", 1.0), (0.004, "", None), (0.001, "", None), (9.0, "x", 3.0)],
)
def test_calls_that_begin_a_burst_are_compared_with_the_recorded_ones(
    leading: float, reason: str, excess: float | None
) -> None:
    first = replace(block(2, 2), lead_ins=(1, 2), leading=leading, set_aside=reason)
    second = replace(block(1, 2), lead_ins=(3,), leading=0.012)
    blocks = (first, second) if reason else (first,)
    output = reduced(raw([1_000_000] * sum(b.bursts * b.samples for b in blocks), *blocks))
    assert output.values.get("lead_in_excess") == (excess and pytest.approx(excess))


def test_fewer_observed_calls_than_were_made_are_refused() -> None:
    with pytest.raises(ValueError, match="3 observed calls, of 4"):
        observed([1, 1, 1], block(2, 2))
