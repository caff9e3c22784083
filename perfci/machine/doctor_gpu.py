"""Looking at the card that torch would measure on: who else uses it, and is it slowed down."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfci.machine.finding import Finding
from perfci.machine.gpu_watch import GpuWatch, Unwatchable, open_gpu_watch
from perfci.machine.quiet import child_environment
from perfci.model.settings import Quiet
from perfci.units import counted

_PROBE_S = 120.0
_PROBE = """
import torch
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(0))
    print(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
"""


@dataclass(frozen=True, slots=True)
class Card:
    """The card that torch uses first, as torch knows it."""

    name: str
    uuid: str


def gpu(nvml: Any, ask_torch: Callable[[], Card | Finding]) -> Finding:
    """Examine the card that ``ask_torch`` names; ``nvml`` is the module pynvml."""
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return Finding("ok", "GPU", "no NVIDIA driver here; GPU metrics are not measured")
    except nvml.NVMLError as error:
        return Finding(
            "worse", "GPU", f"NVML can't be read: {error}", "Run `nvidia-smi`; it should work."
        )
    card = ask_torch()
    if isinstance(card, Finding):
        return card
    try:
        watch = open_gpu_watch(nvml, card.uuid)
    except Unwatchable as reason:
        return Finding(
            "worse",
            "GPU",
            f"{card.name} can't be watched: {reason}",
            "Its slowdowns and other processes on it go unseen, and its energy isn't measured.",
        )
    return _seen(watch, card.name)


def card_of(python: str, environment: Mapping[str, str]) -> Card | Finding:
    """Return the card that ``python``'s torch uses, or a finding where it has none."""
    try:
        done = subprocess.run(
            [python, "-P", "-c", _PROBE],
            env=child_environment(environment, Quiet(), 1, (), {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROBE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _no_card(python, str(error))
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return _no_card(python, last)
    if not done.stdout.strip():
        return _no_card(python, "torch.cuda.is_available() is False")
    name, uuid = done.stdout.split("\n")[-3:-1]  # the last two lines: torch may print before
    return Card(name, uuid)


def _no_card(python: str, why: str) -> Finding:
    return Finding(
        "worse",
        "GPU",
        f"a driver is here, but no card for the torch of {python}: {why}",
        "GPU metrics are not measured. For them install a CUDA build of torch there, and look at "
        "CUDA_VISIBLE_DEVICES.",
    )


def _seen(watch: GpuWatch, name: str) -> Finding:
    state = watch.read()
    if state.compute_pids:
        return Finding(
            "worse",
            "GPU",
            f"{name} is used by {counted(len(state.compute_pids), 'other process')}",
            "Bursts beside them are excluded; stop them (nvidia-smi shows which).",
        )
    if state.slowdown:
        return Finding(
            "worse",
            "GPU",
            f"{name} is slowed down: {state.slowdown}",
            "Cool it, or raise its power limit.",
        )
    temperature, clock = watch.temperature(), watch.sm_clock()
    readings = [
        *([] if temperature is None else [f"{temperature} °C"]),
        *([] if clock is None else [f"SM clock {clock} MHz"]),
        *(f"{what} unknown to NVML ({why})" for what, why in watch.unknown.items()),
    ]
    return Finding("ok", "GPU", ", ".join([name, *readings]))
