"""Work on several CUDA cards: which call is made when, on a runtime that writes down its calls."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from perfci.api.distributed import orders
from perfci.errors import Unusable
from perfci.worker import calls as burst_loops
from perfci.worker.calls import device_burst, synchronised_burst
from perfci.worker.devices import BurstDevice, check_output, cuda, kinds, members, used

MIB = 1 << 20


class FakeTensor:
    def __init__(self, device: str) -> None:
        self.device = device


class FakeCuda:
    """torch.cuda with cards that hold memory as given. ``calls`` are those made so far, in order.

    A card's work takes as many ms as ``ends`` has after each event recorded there.
    """

    def __init__(self, *held: int) -> None:
        self.held = held
        self.calls: list[str] = []
        self.current = 0
        self.ends = [2.0 + card for card in range(len(held))]
        self.at = [0.0] * len(held)

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return len(self.held)

    def current_device(self) -> int:
        return self.current

    def memory_reserved(self, card: int) -> int:
        return self.held[card]

    def max_memory_allocated(self, name: str | int) -> int:
        return self.held[card_of(name)]

    max_memory_reserved = memory_allocated = max_memory_allocated

    def reset_peak_memory_stats(self, name: str | int) -> None:
        self.calls.append(f"reset {card_of(name)}")

    def memory_snapshot(self) -> list[dict[str, Any]]:
        return []

    def synchronize(self, name: str | int) -> None:
        self.calls.append(f"wait {card_of(name)}")

    def current_stream(self, name: str) -> str:
        return f"stream of {card_of(name)}"

    @contextmanager
    def device(self, name: str) -> Iterator[None]:
        before, self.current = self.current, card_of(name)
        yield
        self.current = before

    def _sleep(self, cycles: int) -> None:
        self.calls.append(f"hold {self.current}")

    def get_device_properties(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(uuid=f"card-{card_of(name)}", L2_cache_size=MIB)

    def Event(self, *, enable_timing: bool) -> FakeEvent:
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, runtime: FakeCuda) -> None:
        self._runtime = runtime

    def record(self, stream: str) -> None:
        card = card_of(stream)
        self._runtime.calls.append(f"event {card}")
        self._runtime.at[card] += self._runtime.ends[card]
        self._card, self._at = card, self._runtime.at[card]

    def elapsed_time(self, other: FakeEvent) -> float:
        assert other._card == self._card, "CUDA compares no events of two cards"
        return other._at - self._at


def card_of(name: str | int) -> int:
    return int(str(name)[-1])


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """Cards 0 and 2 of three hold memory: the process uses these."""
    made = FakeCuda(100, 0, 30)
    torch = SimpleNamespace(
        cuda=made,
        version=SimpleNamespace(cuda="12.6"),
        Tensor=FakeTensor,
    )
    pytree = SimpleNamespace(tree_leaves=lambda output: output)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.utils", SimpleNamespace(_pytree=pytree))
    return made


@pytest.fixture
def both(runtime: FakeCuda) -> BurstDevice:
    device = used(OWN, [FakeTensor("cuda:2")])
    assert device is not None
    return device


OWN = tuple(kind for kind in kinds(()) if kind is cuda)


def test_all_cards_that_hold_memory_are_in_use_and_no_other(both: BurstDevice) -> None:
    assert both.name == "cuda:2, cuda:0"
    assert [member.uuid() for member in members(both)] == ["card-2", "card-0"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("outputs", "named", "names"),
    [
        ([], "", {"cuda:0", "cuda:2"}),
        (["cpu"], "", {"cuda:0", "cuda:2"}),
        (["cuda:1"], "", {"cuda:0", "cuda:1", "cuda:2"}),
        ([], "cuda:2", {"cuda:0", "cuda:2"}),
        ([], "cuda", {"cuda:0", "cuda:2"}),
    ],
)
def test_the_devices_are_the_outputs_the_named_and_those_in_use(
    runtime: FakeCuda, outputs: list[str], named: str, names: set[str]
) -> None:
    device = used(OWN, list(map(FakeTensor, outputs)), cuda.opened(named) if named else None)
    assert {member.name for member in members(device)} == names


def test_each_card_is_waited_for_before_each_reading_of_the_clock(
    runtime: FakeCuda, both: BurstDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burst_loops, "perf_counter_ns", lambda: runtime.calls.append("clock") or 7)
    wait = ["wait 2", "wait 0"]
    synchronised_burst(lambda: runtime.calls.append("call"), array("q"), both, both.synchronize, 2)
    assert runtime.calls == ["clock", *[*wait, "clock", "call", *wait, "clock"] * 2]
    runtime.calls.clear()
    work = partial(runtime.calls.append, "call")
    device_burst(work, array("q"), both, both.synchronize, 1, samples=array("q"))
    events = ["event 2", "event 0"]
    assert runtime.calls == [*wait, "clock", *events, "call", *events, *wait, "clock"]


def test_a_calls_own_time_is_that_of_the_card_that_ends_last(
    runtime: FakeCuda, both: BurstDevice
) -> None:
    both.hold(0.001)  # type: ignore[attr-defined]  (measures how fast each card spins)
    runtime.calls.clear()
    samples, work = array("q"), lambda: runtime.calls.append("call")
    device_burst(work, samples, both, both.synchronize, 1, latency_ns=1_000_000)
    assert list(samples) == [4_000_000]  # of card 2
    events, wait = ["event 2", "event 0"], ["wait 2", "wait 0"]
    assert runtime.calls == [*wait, "hold 2", "hold 0", *events, "call", *events, *wait]
    assert runtime.current == 0


def test_peaks_are_reset_on_each_card_and_summed(runtime: FakeCuda, both: BurstDevice) -> None:
    both.reset_peaks()
    assert runtime.calls == ["reset 2", "reset 0"]
    assert both.peaks() == {"peak_device_memory": 130.0, "peak_device_memory_reserved": 130.0}
    assert both.allocated() == 130.0
    assert both.missing() == {}


def test_an_output_on_any_card_is_waited_for_and_one_on_another_kind_is_refused(
    both: BurstDevice,
) -> None:
    check_output("cuda:0", [FakeTensor("cuda:2")])
    with pytest.raises(Unusable, match="is on cpu"):
        check_output("cuda:0", [FakeTensor("cpu")])


def test_a_rank_waits_for_all_of_its_cards_and_resets_their_peaks_without_garbage(
    runtime: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders.gc, "collect", lambda: runtime.calls.append("collect"))
    rank = orders.Rank()
    rank.wait()
    assert runtime.calls == ["wait 0", "wait 2"]
    runtime.calls.clear()
    steps = rank.peaks()
    next(steps)
    assert runtime.calls == ["collect", "reset 0", "reset 2", "collect"]
    next(steps)
    next(steps)
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value["rank_peak_device_memory"] == 130.0
