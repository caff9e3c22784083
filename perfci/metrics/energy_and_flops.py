"""Energy of a call, and its floating-point operations with their share of the machine's peak.

No verdict depends on them. torch's own counter has formulas for matrix products, convolutions and
most attention. Other operators count as zero.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from perfci.clock import perf_counter
from perfci.metrics import NOTHING, Collector, Reading, Warm, Watch
from perfci.model.case import Metric
from perfci.model.finding import Finding, finding

PLACE = 7
METRICS = {
    Metric("energy", "J/call", "per_worker", 0.10, "info"): (
        "total energy of the GPU ÷ calls, as NVML counts it"
    ),
    Metric("sm_clock", "MHz", "per_worker", 0.05, "info", direction="higher"): (
        "clock of the GPU's multiprocessors during the calls that energy is measured in (NVML)"
    ),
    Metric("flops", "flop", "exact", 0.0, "info", absolute=True): (
        "floating-point operations of one call, as `torch.utils.flop_counter` counts them; for "
        "compiled work those of eager"
    ),
}
_UNREADABLE = {
    "energy": "the card's energy can't be read",
    "sm_clock": "the card's clock can't be read",
}
_ENERGY_S = 0.5
"""Time for which a side runs alone to measure energy. NVML's counter moves every 20 to 100 ms, and
whole steps of it are counted. A card at its power limit shows that within 0.4 s."""
_LONGEST_CALL_S = 1.0
"""Operations of longer calls aren't counted, because counting needs one more call."""
_LEAST_FLOPS = 1e5
"""With fewer operations, a call's share of the peak means nothing: launching takes longer."""
_SIDES = {"cpu": 512}
"""Length of a side of the square matrices whose product gives the peak, by type of device."""
_DEFAULT_SIDE = 4096
_PEAK_S = 0.05
"""Time for which the product is repeated to find the peak."""


class EnergyWatch(Watch):
    """Reads the card's energy while this side runs alone: turns are too short for its counter."""

    def after_bursts(self) -> Mapping[str, float]:
        """Return the energy of a call in J and the card's clock meanwhile. NaN where unknown."""
        if not self.side.on_device:
            return {}
        return {"energy": self.side.call_energy(_ENERGY_S), "sm_clock": self.side.sm_clock}


WATCH = EnergyWatch


class EnergyAndFlops(Collector):
    """Counts the operations of one call, in the rounds that check accuracy."""

    def after_bursts(self) -> Reading:
        """Return the reason why no card's energy can be read, if there is one."""
        why = self.scene.missing_reason("energy")
        return Reading(missing=dict.fromkeys(_UNREADABLE, why)) if why else NOTHING

    def more_calls(self) -> Reading:
        """Return the count, or nothing if the work has no operator that torch can count."""
        scene = self.scene
        if "torch" not in sys.modules or not scene.order.accuracy:
            return NOTHING
        call = scene.work.plain if scene.compiled() else scene.once
        if call is None:
            return _missing("compiled: torch's counter does not see inside")
        if scene.call_s > _LONGEST_CALL_S:
            return _missing(f"a call takes more than {_LONGEST_CALL_S:g} s")
        try:
            flops, dtype = _counted(call)
        except Exception as error:  # noqa: BLE001 (a dispatch mode around foreign operators may raise anything)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            return _missing(f"torch's counter failed: {reason[:200]}")
        return Reading({"flops": flops}, remarks=self._share(flops, dtype)) if flops else NOTHING

    def _share(self, flops: float, dtype: Any) -> dict[str, Finding]:
        peak = _peak(dtype, self.scene.work.device) if flops >= _LEAST_FLOPS else 0.0
        if not peak:
            return {}
        name = str(dtype).removeprefix("torch.")
        share = flops / self.scene.call_s / peak
        return {"flops": finding("flop-share", share=share, peak=peak, dtype=name)}


COLLECTOR = EnergyAndFlops


def reduce(warm: Warm) -> Reading:
    """Return the energy of a call, and the clock."""
    readings = {
        name: warm.parent_readings[name] for name in _UNREADABLE if name in warm.parent_readings
    }
    values = {name: reading for name, reading in readings.items() if reading > 0.0}  # none is NaN
    return Reading(values, {name: _UNREADABLE[name] for name in readings.keys() - values})


def _missing(why: str) -> Reading:
    return Reading(missing={"flops": why})


def _counted(call: Any) -> tuple[float, Any]:
    """Return the floating-point operations of one call, and their operands' commonest dtype."""
    with flop_counter() as counter:
        call()
    return counter.flops, next((dtype for dtype, _ in counter.dtypes.most_common(1)), None)


def flop_counter() -> Any:
    """Return a context that counts ``flops`` while it is open, and their operands' ``dtypes``.

    The formulas are those of torch's counter. The counter's own mode isn't used, because the first
    operator under it imports all of torch._dynamo, which takes seconds.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    class Counted(TorchDispatchMode):  # type: ignore[misc]
        """Takes composite operators apart, and counts what has a formula."""

        def __init__(self) -> None:
            super().__init__()
            self.flops = 0.0
            self.dtypes: Counter[Any] = Counter()

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # True would import torch._dynamo at the first operator, as torch's own mode does
            return False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if any(kind.__name__ == "DTensor" for kind in types):
                return NotImplemented  # its operators on this rank's part are counted
            kwargs = kwargs or {}
            formula = flop_registry.get(func.overloadpacket)
            if formula is None:
                with self:
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            output = func(*args, **kwargs)
            if formula is not None:
                self.flops += formula(*args, **kwargs, out_val=output)
                self.dtypes.update(
                    argument.dtype for argument in args if isinstance(argument, torch.Tensor)
                )
            return output

    return Counted()


def _peak(dtype: Any, device: str) -> float:
    """Return the operations per second of the fastest square matrix product, or 0 without any."""
    import torch

    place = torch.device(device or "cpu")
    size = _SIDES.get(place.type, _DEFAULT_SIDE)
    wait = getattr(torch, place.type).synchronize if place.type != "cpu" else lambda: None
    try:
        square = torch.ones(size, size, dtype=dtype, device=place)
        best, begun = float("inf"), perf_counter()
        for _ in range(100):
            wait()
            started = perf_counter()
            torch.mm(square, square)
            wait()
            best = min(best, perf_counter() - started)
            if perf_counter() - begun > _PEAK_S:
                break
    except (RuntimeError, TypeError):  # no product of this type, or no memory for it
        return 0.0
    return 2.0 * size**3 / best
