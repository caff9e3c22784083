"""The cards that workers use, and their state around each burst, read through NVML.

Nothing on a card is set.

A burst under a thermal slowdown or a power brake, or with a foreign process on the card, is
excluded. A card at its power limit is in its normal state for large matrix products: both sides are
then measured in long turns, because in short ones they share the clock that the control loop sets.
What NVML can't read of a card (a laptop's, a virtual one) is unknown, and is noted: a session never
ends for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from perfci.worker.devices.cuda import DRIVER

T = TypeVar("T")
# bits of NVML's clocks event reasons; the slowdowns begin with the gravest
_SLOWDOWNS = (
    (0x0000000000000008, "hardware slowdown"),
    (0x0000000000000020, "software thermal slowdown"),
    (0x0000000000000040, "hardware thermal slowdown"),
    (0x0000000000000080, "power brake"),
)
_POWER_LIMIT = 0x0000000000000004


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading of a card. A value None means that NVML can't read it.

    ``slowdown`` is empty if the card isn't slowed down. If ``at_power_limit`` is true, the power
    limit decides the card's clock.
    """

    slowdown: str | None
    compute_pids: frozenset[int] | None
    at_power_limit: bool = False

    @staticmethod
    def joined(states: Sequence[GpuState]) -> GpuState:
        """Return the state of several cards as one."""
        pids = _known(state.compute_pids for state in states)
        slowdowns = _known(state.slowdown for state in states)
        return GpuState(
            slowdown=next(filter(None, slowdowns), "" if slowdowns else None),
            compute_pids=frozenset[int]().union(*pids) if pids else None,
            at_power_limit=any(state.at_power_limit for state in states),
        )


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


class UnwatchableCard(Exception):
    """A card that NVML can't watch; the text says why."""


class GpuWatch:
    """Reads one card by NVML. ``unknown`` has what NVML couldn't read so far, with the reasons."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.unknown: dict[str, str] = {}
        self._nvml = nvml
        self._handle = handle

    def read(self) -> GpuState:
        """Return the state now. Called between bursts, never inside one."""
        reasons = self._reading("slowdowns", self._clock_reasons)
        slowdowns = (name for bit, name in _SLOWDOWNS if (reasons or 0) & bit)
        slowdown = None if reasons is None else next(slowdowns, "")
        return GpuState(
            slowdown=slowdown,
            compute_pids=self._reading("processes", self._processes),
            at_power_limit=slowdown == "" and bool((reasons or 0) & _POWER_LIMIT),
        )

    def _reading(self, what: str, read: Callable[..., T], *of: Any) -> T | None:
        """Return the result of ``read(*of)``. If NVML fails, keep the reason and return None."""
        try:
            return read(*of)
        except self._nvml.NVMLError as error:
            self.unknown.setdefault(what, str(error).strip() or type(error).__name__)
            return None

    def temperature(self) -> int | None:
        """Return the card's temperature in °C."""
        read, sensor = self._nvml.nvmlDeviceGetTemperature, self._nvml.NVML_TEMPERATURE_GPU
        return self._reading("temperature", read, self._handle, sensor)

    def sm_clock(self) -> int | None:
        """Return the clock of the multiprocessors in MHz."""
        read, clock = self._nvml.nvmlDeviceGetClockInfo, self._nvml.NVML_CLOCK_SM
        return self._reading("clocks", read, self._handle, clock)

    def facts(self) -> dict[str, str]:
        """Return the settings that decide the card's speed, as far as NVML can read them."""
        nvml, handle = self._nvml, self._handle
        readings: dict[str, Callable[[], str]] = {
            "device_power_limit": lambda: (
                f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3:g} W"
            ),
            "device_ecc": lambda: "on" if nvml.nvmlDeviceGetEccMode(handle)[0] else "off",
            "device_clock_set": lambda: (
                f"{nvml.nvmlDeviceGetApplicationsClock(handle, nvml.NVML_CLOCK_SM)} MHz"
            ),
            "device_clock_most": lambda: (
                f"{nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)} MHz"
            ),
        }
        facts = {}
        for name, read in readings.items():
            with suppress(nvml.NVMLError):  # a card without it
                facts[name] = read()
        return facts

    def _clock_reasons(self) -> int:
        """Return the bits of the reasons that decide the clock.

        A driver before 535 knows the function only by its old name. pynvml has both names with any
        driver, so that only a call shows whether the new one works.
        """
        nvml = self._nvml
        try:
            return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except nvml.NVMLError_FunctionNotFound:
            return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def _processes(self) -> frozenset[int]:
        listed = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return frozenset(process.pid for process in listed)


def open_gpu_watch(nvml: Any, uuid: str) -> GpuWatch:
    """Return a watch on the card that torch calls ``uuid``. Raises UnwatchableCard."""
    if not uuid:
        raise UnwatchableCard("torch doesn't say which NVIDIA card it uses; 2.4 and newer do")
    try:
        nvml.nvmlInit()
        handle = _handle(nvml, uuid)
    except nvml.NVMLError as error:
        raise UnwatchableCard(f"NVML says: {error}") from error
    if handle is None:
        raise UnwatchableCard(
            "it is a part of a card (MIG), and NVML reads the slowdowns of the whole"
        )
    return GpuWatch(nvml, handle)


def _handle(nvml: Any, uuid: str) -> Any:
    """Return NVML's card of that UUID, or None for an instance of a card that is split (MIG).

    CUDA reports the UUID of the instance. An older CUDA reports that of the whole card.
    """
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except (nvml.NVMLError_NotFound, nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")
        return None
    try:
        split, _ = nvml.nvmlDeviceGetMigMode(handle)
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return handle  # a card, or a driver, that knows no MIG
    return None if split else handle


def set_aside_reason(before: GpuState, after: GpuState, workers: Collection[int]) -> str:
    """Return why a burst between the two readings is left out, or an empty text.

    perfci's own processes are those of the sessions of its ``workers``. In a container NVML shows
    other process ids. So a process counts as foreign only if NVML shows own processes, too.
    """
    if slowdown := before.slowdown or after.slowdown:
        return slowdown
    seen = (before.compute_pids or frozenset()) | (after.compute_pids or frozenset())
    foreign = {pid for pid in seen if not {pid, _session_of(pid)} & set(workers)}
    return f"beside a foreign process ({min(foreign)})" if foreign and foreign != seen else ""


class GpuWatches:
    """The watches of a session: one per card, opened when a worker first reports that card.

    NVML ignores CUDA_VISIBLE_DEVICES and counts cards in an order of its own, so that torch's
    ``cuda:0`` may be any of its cards: only a UUID names the same card in both. ``nvml`` stands for
    the module ``pynvml``. The file ``driver`` exists if NVIDIA's driver is loaded.
    """

    def __init__(self, nvml: Any = None, driver: Path = DRIVER) -> None:
        self._nvml = nvml
        self._driver = driver
        self._opened: dict[str, GpuWatch | UnwatchableCard] = {}
        self._used: dict[str, None] = {}
        self._handles: Sequence[Any] | None = None
        self.at_power_limit: set[str] = set()
        """Cases in which a card reached its power limit."""

    def of(self, uuid: str) -> GpuWatch | None:
        """Return the watch on the card that torch calls ``uuid``, or None if there can't be one."""
        self._used[uuid] = None
        watch = self._watch(uuid)
        return None if isinstance(watch, UnwatchableCard) else watch

    def group(self, uuids: Sequence[str]) -> tuple[GpuWatch, ...]:
        """Return the watches on all of these cards, or none if one of them can't be watched."""
        cards = tuple(card for card in map(self.of, dict.fromkeys(uuids)) if card)
        return cards if len(cards) == len(set(uuids)) else ()

    def facts(self, uuids: Sequence[str]) -> dict[str, str]:
        """Return what decides the speed of these cards. Cards that differ have a value each."""
        watches = map(self._watch, uuids)  # an unwatchable card is noted if a worker uses it
        of_cards = [watch.facts() for watch in watches if isinstance(watch, GpuWatch)]
        names = dict.fromkeys(name for facts in of_cards for name in facts)
        return {
            name: ", ".join(dict.fromkeys(facts.get(name, "unknown") for facts in of_cards))
            for name in names
        }

    def of_session(self, leader: int) -> tuple[GpuWatch, ...]:
        """Return the watches on NVIDIA's cards that processes of this worker's session use.

        Ranks and servers are such processes: their worker itself uses no card.
        """
        if not self._driver.exists():
            return ()
        nvml = self._binding()
        uuids = []
        try:
            if self._handles is None:
                nvml.nvmlInit()
                every = range(nvml.nvmlDeviceGetCount())
                self._handles = tuple(map(nvml.nvmlDeviceGetHandleByIndex, every))
            for handle in self._handles:
                pids = {each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
                if any(_session_of(pid) == leader for pid in pids - {leader}):
                    uuids.append(str(nvml.nvmlDeviceGetUUID(handle)).removeprefix("GPU-"))
        except nvml.NVMLError:
            return ()
        return self.group(uuids)

    def _watch(self, uuid: str) -> GpuWatch | UnwatchableCard:
        if uuid not in self._opened:
            try:
                self._opened[uuid] = open_gpu_watch(self._binding(), uuid)
            except UnwatchableCard as reason:
                self._opened[uuid] = reason
        return self._opened[uuid]

    def _binding(self) -> Any:
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        return self._nvml

    def notes(self) -> tuple[str, ...]:
        """Return what went unseen, and why: a sentence each, no two alike."""
        notes = [note for uuid in self._used for note in _unseen(self._opened[uuid])]
        if self.at_power_limit:
            cases = ", ".join(sorted(self.at_power_limit))
            notes.append(
                f"The card reached its power limit in {cases}: both sides took turns of a second, "
                "each at the clock that its own power allows."
            )
        return tuple(dict.fromkeys(notes))


def read_as_one(cards: Sequence[GpuWatch]) -> GpuState | None:
    """Return the joined state of a worker's cards, or None without any."""
    return GpuState.joined([card.read() for card in cards]) if cards else None


def reach_power_limit(cards: Sequence[GpuWatch], after_s: float) -> bool:
    """Return whether one of the cards is at its power limit ``after_s`` from now."""
    sleep(after_s)
    return any(card.read().at_power_limit for card in cards)


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or is outside this system's view
        return 0


def _unseen(watch: GpuWatch | UnwatchableCard) -> list[str]:
    if isinstance(watch, UnwatchableCard):
        unseen = "Its slowdowns and foreign processes went unseen."
        return [f"The card was not watched: {watch}. {unseen}"]
    return [f"NVML can't read the card's {what} ({why})." for what, why in watch.unknown.items()]
