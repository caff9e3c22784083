"""The names a benchmark file uses. Importing this never imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfci.api.command import command
from perfci.api.definition import benchmark, user_frame
from perfci.api.work import Work, metric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

__all__ = ["benchmark", "command", "inference", "metric", "training_step"]


def inference(
    model: Callable[..., Any],
    *inputs: Any,
    mode: str = "eager",
    items: float | None = None,
    device: str | torch.device | None = None,
    compile_options: dict[str, Any] | None = None,
    shapes: Sequence[Any] | None = None,
    **keyword_inputs: Any,
) -> Work:
    """Return the work of one call ``model(*inputs, **keyword_inputs)`` without gradients.

    ``mode`` is ``eager``, ``default``, ``reduce-overhead``, ``max-autotune`` or a
    torch.compile backend's name; ``device`` defaults to a CUDA device where there is one;
    model and inputs are moved there. ``items`` counts what one call handles (throughput). With
    ``shapes`` (inputs, tuples of inputs, or shapes of the one input) a call is one of each.
    """
    from perfci.api.inference import inference_work

    return inference_work(
        model,
        inputs,
        keyword_inputs,
        mode=mode,
        items=items,
        device=device,
        compile_options=compile_options,
        where=user_frame(),
        shapes=shapes,
    )


def training_step(
    model: Any,
    inputs: Any,
    target: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    mode: str = "eager",
    items: float | None = None,
    device: str | torch.device | None = None,
    compile_options: dict[str, Any] | None = None,
) -> Work:
    """Return the work of one step: forward, loss, backward, and the optimizer's step.

    ``inputs`` is a tensor or a tuple of positional inputs. ``loss(output, target)`` gives a
    scalar; without it the model's output must be one. ``optimizer`` is an optimizer over
    ``model``'s parameters, a callable that makes one from them, or None for SGD.
    """
    from perfci.api.training import training_work

    return training_work(
        model,
        inputs,
        target,
        loss=loss,
        optimizer=optimizer,
        mode=mode,
        items=items,
        device=device,
        compile_options=compile_options,
        where=user_frame(),
    )
