"""One inference call as work. Imports torch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from perfci.api.modes import in_mode
from perfci.api.placement import check_callable, check_items, chosen_device, module_of, placed
from perfci.api.reference import float64_reference
from perfci.api.shapes import Shaped, variants_of
from perfci.api.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def inference_work(
    model: Callable[..., Any],
    inputs: tuple[Any, ...],
    keyword_inputs: Mapping[str, Any],
    *,
    mode: str,
    items: float | None,
    device: str | torch.device | None,
    compile_options: Mapping[str, Any] | None,
    where: str,
    shapes: Sequence[Any] | None = None,
) -> Work:
    """Return the work of one inference call; errors begin with ``where``.

    ``model.training`` stays as the user set it. Entering inference mode costs 1.5 µs of each
    call, the same on both sides.
    """
    check_callable(model, "the model", where)
    check_items(items, where)
    forward = in_mode(model, mode, compile_options, where)
    place = chosen_device(device, where)
    module = module_of(model)
    if module is not None:
        module.to(place)
    every = None if shapes is None else variants_of(shapes, tuple(inputs), where)
    variants, keywords = placed((every or {"": tuple(inputs)}, dict(keyword_inputs)), place)
    shaped = None if every is None else Shaped(forward, variants, keywords)
    once = shaped or partial(forward, *variants[""], **keywords)
    inference_mode = torch.inference_mode

    def call() -> Any:
        with inference_mode():
            return once()

    def plain() -> None:
        with inference_mode():
            for one in variants.values():
                model(*one, **keywords)

    def accuracy() -> tuple[Any, Any]:
        candidate = call()
        references = float64_reference(model, tuple(variants.values()), keywords)
        return candidate, references if shaped else references[0]

    return Work(
        call=call,
        mode=mode,
        compiled=mode != "eager",
        device=str(place),
        items=items,
        accuracy=accuracy,
        plain=plain,
        **(_of_shapes(shaped, place, mode, compile_options or {}) if shaped else {}),
    )


def _of_shapes(
    shaped: Shaped, place: torch.device, mode: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the work of several shapes has besides."""
    wait = getattr(torch, place.type).synchronize if place.type != "cpu" else lambda: None
    compiled = mode != "eager"
    return {
        "metrics": tuple(shaped.metrics(wait, compiled=compiled)),
        "remarks": lambda: shaped.remarks(dynamic=bool(options.get("dynamic"))) if compiled else {},
    }
