"""The state of cards around each burst, read through NVML or amdsmi. Nothing on a card is set.

A burst under a thermal slowdown or a power brake, or with a foreign process on the card, is
excluded. A card at its power limit is in its normal state for large matrix products: both sides are
then measured in long turns, because in short ones they share the clock that the control loop sets.
What NVML can't read of a card (a laptop's, a virtual one) is unknown, and is noted: a session never
ends for it.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, TypeVar

T = TypeVar("T")
# bits of NVML's clocks event reasons; the slowdowns begin with the gravest
_APPLICATION_CLOCKS = 0x0000000000000002
_SLOWDOWNS = (
    (0x0000000000000008, "hardware slowdown"),
    (0x0000000000000020, "software thermal slowdown"),
    (0x0000000000000040, "hardware thermal slowdown"),
    (0x0000000000000080, "power brake"),
)
_POWER_LIMIT = 0x0000000000000004
_AT_LIMIT = "power limit"
PREFIX = "amd:"
"""Begins a worker's name for an AMD card. The serial number follows, if torch knows it."""
_THROTTLED = (
    ("prochot_residency_acc", "hardware slowdown"),
    ("socket_thm_residency_acc", "hardware thermal slowdown"),
    ("hbm_thm_residency_acc", "hardware thermal slowdown"),
    ("vr_thm_residency_acc", "power brake"),
    ("ppt_residency_acc", _AT_LIMIT),
)
"""Counters of MI300 and later that grow while the card is throttled, the gravest first."""
_OTHER_VERSIONS = (AttributeError, KeyError, TypeError, ValueError)
"""Errors that occur if amdsmi lacks a function or answers in another form."""
_POLL_S = 0.002
"""Pause between two readings of the energy counter."""
_ANY = "throttle_status"
"""The field of cards before MI300: whether the card is throttled now."""


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading of a card. A value None means that the driver's library can't read it.

    ``energy`` is in J since the driver was loaded. ``slowdown`` is empty if the card isn't slowed
    down. ``memory_errors`` counts errors since the same time that ECC could not correct; most cards
    have no ECC. If ``at_power_limit`` is true, the power limit decides the card's clock.
    """

    energy: float | None
    slowdown: str | None
    compute_pids: frozenset[int] | None
    memory_errors: int | None = None
    at_power_limit: bool = False


class UnwatchableCard(Exception):
    """A card that NVML can't watch; the text says why."""


class CardWatch(ABC):
    """Reads one card by its driver's library.

    ``unknown`` has what the library couldn't read so far, each with the reason. ``clocks_set``
    tells whether the user's application clocks limited the card's clock. ``errors`` are the
    exceptions that the library raises.
    """

    library = ""

    def __init__(self, errors: tuple[type[Exception], ...]) -> None:
        self.unknown: dict[str, str] = {}
        self.clocks_set = False
        self._errors = errors

    def read(self) -> GpuState:
        """Return the state now. Called between bursts, never inside one."""
        throttling = self._reading("slowdowns", self._throttling)
        return GpuState(
            energy=self.energy(),
            slowdown="" if throttling == _AT_LIMIT else throttling,
            compute_pids=self._reading("processes", self._pids),
            memory_errors=self._reading("memory errors", self._memory_errors),
            at_power_limit=throttling == _AT_LIMIT,
        )

    def energy(self) -> float | None:
        """Return the card's energy counter in J, or None if it can't be read."""
        return self._reading("energy", self._energy)

    def _reading(self, what: str, read: Callable[[], T]) -> T | None:
        """Return the result of ``read``. If the library fails, keep the reason and return None."""
        try:
            return read()
        except self._errors as error:
            self.unknown.setdefault(what, str(error).strip() or type(error).__name__)
            return None

    @abstractmethod
    def _energy(self) -> float: ...

    @abstractmethod
    def _throttling(self) -> str:
        """Return the gravest slowdown, or ``_AT_LIMIT`` at the power limit, or an empty text."""

    @abstractmethod
    def _pids(self) -> frozenset[int]: ...

    @abstractmethod
    def _memory_errors(self) -> int | None: ...


class GpuWatch(CardWatch):
    """Reads one card by NVML. Made by ``open_gpu_watch``."""

    library = "NVML"

    def __init__(self, nvml: Any, handle: Any) -> None:
        super().__init__((nvml.NVMLError,))
        self._nvml = nvml
        self._handle = handle

    def temperature(self) -> int | None:
        """Return the card's temperature in °C."""
        nvml = self._nvml
        return self._reading(
            "temperature",
            lambda: int(nvml.nvmlDeviceGetTemperature(self._handle, nvml.NVML_TEMPERATURE_GPU)),
        )

    def sm_clock(self) -> int | None:
        """Return the clock of the multiprocessors in MHz."""
        nvml = self._nvml
        return self._reading(
            "clocks", lambda: int(nvml.nvmlDeviceGetClockInfo(self._handle, nvml.NVML_CLOCK_SM))
        )

    def _energy(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3

    def _throttling(self) -> str:
        """See ``CardWatch``. A driver before 535 knows the function only by its old name.

        pynvml has both names with any driver, so that only a call shows whether the new one works.
        """
        nvml = self._nvml
        try:
            reasons = int(nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except nvml.NVMLError_FunctionNotFound:
            reasons = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        self.clocks_set |= bool(reasons & _APPLICATION_CLOCKS)
        return slowdown_name(reasons) or (_AT_LIMIT if reasons & _POWER_LIMIT else "")

    def _pids(self) -> frozenset[int]:
        listed = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return frozenset(process.pid for process in listed)

    def _memory_errors(self) -> int | None:
        nvml = self._nvml
        try:
            return int(
                nvml.nvmlDeviceGetTotalEccErrors(
                    self._handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            )
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return None  # a card without ECC, or with it turned off


class GpuWatches:
    """The watches of a session: one per card, opened when a worker first reports that card.

    NVML ignores CUDA_VISIBLE_DEVICES and counts cards in an order of its own, so that torch's
    ``cuda:0`` may be any of its cards: only a UUID names the same card in both. ``nvml`` and
    ``amdsmi`` stand for the modules ``pynvml`` and ``amdsmi``.
    """

    def __init__(self, nvml: Any = None, amdsmi: Any = None) -> None:
        self._nvml = nvml
        self._amdsmi = amdsmi
        self._opened: dict[str, CardWatch | UnwatchableCard] = {}
        self.at_power_limit: set[str] = set()
        """Cases in which a card reached its power limit."""

    def of(self, uuid: str) -> CardWatch | None:
        """Return the watch on the card that torch calls ``uuid``, or None if there can't be one."""
        if uuid not in self._opened:
            try:
                self._opened[uuid] = self._open(uuid)
            except UnwatchableCard as reason:
                self._opened[uuid] = reason
        watch = self._opened[uuid]
        return None if isinstance(watch, UnwatchableCard) else watch

    def _open(self, uuid: str) -> CardWatch:
        if uuid.startswith(PREFIX):
            return open_amd_watch(self._amdsmi, uuid.removeprefix(PREFIX))
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        return open_gpu_watch(self._nvml, uuid)

    def notes(self) -> tuple[str, ...]:
        """Return what went unseen, and why: a sentence each, no two alike."""
        notes = [note for watch in self._opened.values() for note in _unseen(watch)]
        if self.at_power_limit:
            cases = ", ".join(sorted(self.at_power_limit))
            notes.append(
                f"The card reached its power limit in {cases}: both sides took turns of a second, "
                "each at the clock that its own power allows."
            )
        return tuple(dict.fromkeys(notes))


def open_gpu_watch(nvml: Any, uuid: str) -> GpuWatch:
    """Return a watch on the card that torch calls ``uuid``. Raises UnwatchableCard."""
    if not uuid:
        raise UnwatchableCard("this torch doesn't say which card it uses; 2.4 and newer do")
    try:
        nvml.nvmlInit()
        handle = _handle(nvml, uuid)
    except nvml.NVMLError as error:
        raise UnwatchableCard(f"NVML says: {error}") from error
    if handle is None:
        raise UnwatchableCard(
            "it is a part of a card (MIG), and NVML reads energy and slowdowns of the whole"
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


def _unseen(watch: CardWatch | UnwatchableCard) -> list[str]:
    if not isinstance(watch, UnwatchableCard):
        by_reason: dict[str, list[str]] = {}
        for what, why in watch.unknown.items():
            by_reason.setdefault(why, []).append(what)
        notes = [
            f"{watch.library} can't read the card's {', '.join(what)} ({why})."
            for why, what in by_reason.items()
        ]
        if watch.clocks_set:
            notes.append("The card ran at clocks that its user set: the numbers are those at them.")
        return notes
    unseen = "Its slowdowns and foreign processes went unseen, and its energy was not measured."
    return [f"The card was not watched: {watch}. {unseen}"]


def slowdown_name(reasons: int) -> str:
    """Return the gravest slowdown in NVML's bit mask ``reasons``, or an empty text."""
    return next((name for bit, name in _SLOWDOWNS if reasons & bit), "")


def average_power(card: CardWatch, seconds: float) -> float:
    """Return the card's power in W over up to ``seconds`` from now; NaN where it isn't known.

    The counter moves in steps (100 ms apart on an H100), so the time between the first step and
    the last one counts.
    """
    until = monotonic() + seconds
    steps: list[tuple[float, float]] = []
    last = card.energy()
    while last is not None and (now := monotonic()) < until:
        energy = card.energy()
        if energy is not None and energy != last:
            steps.append((now, energy))
            last = energy
        sleep(_POLL_S)
    if len(steps) < 2:
        return math.nan
    (first_s, first_j), (last_s, last_j) = steps[0], steps[-1]
    return (last_j - first_j) / (last_s - first_s)


def own_pids(before: GpuState, after: GpuState, workers: Collection[int]) -> frozenset[int]:
    """Return the ``workers``, and those processes on the card that are in a worker's session."""
    listed = (before.compute_pids or frozenset()) | (after.compute_pids or frozenset())
    return frozenset(workers) | {pid for pid in listed if _session_of(pid) in workers}


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or is outside this system's view
        return 0


def set_aside_reason(before: GpuState, after: GpuState, own_pids: Collection[int]) -> str:
    """Return why a burst between the two readings is left out, or an empty text.

    In a container NVML shows other process ids. So a process counts as foreign only if NVML shows
    perfci's own processes, too.
    """
    if slowdown := before.slowdown or after.slowdown:
        return slowdown
    errors = before.memory_errors, after.memory_errors
    if None not in errors and errors[0] != errors[1]:
        return "uncorrected memory errors"
    seen = (before.compute_pids or frozenset()) | (after.compute_pids or frozenset())
    foreign = seen - set(own_pids)
    if foreign and seen & set(own_pids):
        return f"beside a foreign process ({min(foreign)})"
    return ""


class AmdWatch(CardWatch):
    """Reads one card by amdsmi. Made by ``open_amd_watch``. A slowdown is since the last reading.

    Written from ROCm's documentation of amdsmi 6.3 and later, and not yet run on a card.
    """

    library = "amdsmi"

    def __init__(self, amdsmi: Any, handle: Any) -> None:
        super().__init__((amdsmi.AmdSmiException, *_OTHER_VERSIONS))
        self._amdsmi = amdsmi
        self._handle = handle
        self._counted: dict[str, int] = {}
        level = self._reading("clocks", lambda: str(amdsmi.amdsmi_get_gpu_perf_level(handle)))
        self.clocks_set = bool(level) and not str(level).endswith(("AUTO", "UNKNOWN"))

    def _energy(self) -> float:
        counter = self._amdsmi.amdsmi_get_energy_count(self._handle)
        return float(counter["energy_accumulator"]) * float(counter["counter_resolution"]) / 1e6

    def _throttling(self) -> str:
        """See ``CardWatch``. amdsmi answers ``"N/A"`` for a counter that the card lacks."""
        metrics = self._amdsmi.amdsmi_get_gpu_metrics_info(self._handle)
        counted = {
            name: metrics[name] for name, _ in _THROTTLED if isinstance(metrics.get(name), int)
        }
        before, self._counted = self._counted, counted
        for name, slowdown in _THROTTLED:
            if name in before and counted.get(name, 0) > before[name]:
                return slowdown
        if not counted and not isinstance(metrics.get(_ANY), int):
            raise ValueError("the card doesn't count them")
        return "hardware slowdown" if not counted and metrics[_ANY] else ""

    def _pids(self) -> frozenset[int]:
        """Return the processes with memory on the card.

        amdsmi lists a process that opened the driver on all cards.
        """
        listed = self._amdsmi.amdsmi_get_gpu_process_list(self._handle)
        return frozenset(
            int(process["pid"])
            for process in listed
            if process.get("memory_usage", {}).get("vram_mem", 1)
        )

    def _memory_errors(self) -> int:
        return int(self._amdsmi.amdsmi_get_gpu_total_ecc_count(self._handle)["uncorrectable_count"])


def open_amd_watch(amdsmi: Any, serial: str) -> AmdWatch:
    """Return a watch on the card with that serial number. Raises UnwatchableCard.

    ``amdsmi`` stands for the module, which is imported by default. Without a serial number, the
    machine's only card is meant.
    """
    if amdsmi is None:
        try:
            import amdsmi  # type: ignore[import-not-found,no-redef]
        except Exception as error:  # it searches many places for its library, with as many errors
            raise UnwatchableCard(f"amdsmi can't be imported: {error}") from error
    try:
        amdsmi.amdsmi_init()
        handles = list(amdsmi.amdsmi_get_processor_handles())
        numbers = [_serial(amdsmi, handle) for handle in handles]
    except amdsmi.AmdSmiException as error:
        raise UnwatchableCard(f"amdsmi says: {error}") from error
    if serial:
        handles = [
            candidate
            for candidate, number in zip(handles, numbers, strict=True)
            if number == serial
        ]
    if len(handles) != 1:
        known = serial or "that torch doesn't say"
        raise UnwatchableCard(f"{len(handles)} of amdsmi's cards have the serial number {known}")
    return AmdWatch(amdsmi, handles[0])


def _serial(amdsmi: Any, handle: Any) -> str:
    number = str(amdsmi.amdsmi_get_gpu_asic_info(handle)["asic_serial"])
    return number.lower().removeprefix("0x")
