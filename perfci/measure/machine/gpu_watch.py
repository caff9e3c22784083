"""The state of a card around each burst, read through NVML. Nothing on a card is set.

A burst under a thermal slowdown or a power brake, or with a foreign process on the card, is
excluded. A card at its power limit is in its normal state for large matrix products: both sides are
then measured in long turns, because in short ones they share the clock that the control loop sets.
What NVML can't read of a card (a laptop's, a virtual one) is unknown, and is noted: a session never
ends for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
AT_LIMIT = "power limit"


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading of a card. A value None means that NVML can't read it.

    ``slowdown`` is empty if the card isn't slowed down. ``memory_errors`` counts errors since the
    driver was loaded that ECC could not correct; most cards have no ECC. If ``at_power_limit`` is
    true, the power limit decides the card's clock.
    """

    slowdown: str | None
    compute_pids: frozenset[int] | None
    memory_errors: int | None = None
    at_power_limit: bool = False

    @staticmethod
    def joined(states: Sequence[GpuState]) -> GpuState:
        """Return the state of several cards as one."""
        pids = _known(state.compute_pids for state in states)
        errors = _known(state.memory_errors for state in states)
        slowdowns = _known(state.slowdown for state in states)
        return GpuState(
            slowdown=next(filter(None, slowdowns), "" if slowdowns else None),
            compute_pids=frozenset[int]().union(*pids) if pids else None,
            memory_errors=sum(errors) if errors else None,
            at_power_limit=any(state.at_power_limit for state in states),
        )


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


class UnwatchableCard(Exception):
    """A card that NVML can't watch; the text says why."""


class GpuWatch:
    """Reads one card by NVML. Made by ``open_gpu_watch``.

    ``unknown`` has what NVML couldn't read so far, each with the reason. ``clocks_set`` tells
    whether the user's application clocks limited the card's clock.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.unknown: dict[str, str] = {}
        self.clocks_set = False
        self._nvml = nvml
        self._handle = handle

    def read(self) -> GpuState:
        """Return the state now. Called between bursts, never inside one."""
        throttling = self._reading("slowdowns", self._throttling)
        processes = self._reading("processes", self._processes)
        return GpuState(
            slowdown="" if throttling == AT_LIMIT else throttling,
            compute_pids=processes,
            memory_errors=self._reading("memory errors", self._memory_errors),
            at_power_limit=throttling == AT_LIMIT,
        )

    def _reading(self, what: str, read: Callable[[], T]) -> T | None:
        """Return the result of ``read``. If NVML fails, keep the reason and return None."""
        try:
            return read()
        except self._nvml.NVMLError as error:
            self.unknown.setdefault(what, str(error).strip() or type(error).__name__)
            return None

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

    def _throttling(self) -> str:
        """Return the gravest slowdown, or ``AT_LIMIT`` at the power limit, or an empty text.

        A driver before 535 knows the function only by its old name. pynvml has both names with any
        driver, so that only a call shows whether the new one works.
        """
        nvml = self._nvml
        try:
            reasons = int(nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except nvml.NVMLError_FunctionNotFound:
            reasons = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        self.clocks_set |= bool(reasons & _APPLICATION_CLOCKS)
        return slowdown_name(reasons) or (AT_LIMIT if reasons & _POWER_LIMIT else "")

    def _processes(self) -> frozenset[int]:
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


def slowdown_name(reasons: int) -> str:
    """Return the gravest slowdown in NVML's bit mask ``reasons``, or an empty text."""
    return next((name for bit, name in _SLOWDOWNS if reasons & bit), "")


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
