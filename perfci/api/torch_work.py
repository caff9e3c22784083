"""The work of ``perfci.inference``, with one input shape or several, and ``perfci.training_step``.

Imports torch. A training step's forward and loss are compiled as one function.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from perfci.api import ModelOptions, error_here, fit_label
from perfci.api.torch_models import (
    check_not_compiled,
    chosen_device,
    doubled,
    float64_copy,
    float64_reference,
    in_mode,
    module_of,
    placed,
    reference_output,
    work_of,
)
from perfci.clock import perf_counter
from perfci.collector import Work
from perfci.metrics import ExtraMetric
from perfci.metrics.graphs import frames_traced
from perfci.model.case import Metric
from perfci.stats.quantile import median

_LEARNING_RATE = 1e-3
"""Learning rate of SGD, the default optimizer. It is small, so that long runs stay finite."""
_LATENCY_CALLS, _LATENCY_S = 5, 0.05
"""Least calls, and least time, for the latency of one of several shapes."""
_ADVICE = "Give tensors, tuples of inputs, or shapes of the one input: shapes=[(1, 128), (8, 128)]."


def inference_work(
    model: Callable[..., Any],
    inputs: tuple[Any, ...],
    keyword_inputs: Mapping[str, Any],
    options: ModelOptions,
    shapes: Sequence[Any] | None = None,
) -> Work:
    """Return the work of one inference call.

    ``model.training`` stays as the user set it. Entering inference mode takes 1.5 µs of each call,
    on both sides alike.
    """
    if inputs == (...,) and not keyword_inputs:  # as `perfci init` leaves it
        raise error_here(
            "bad-benchmark",
            "the model's input is still three dots",
            "Write the tensors that the model is run with, such as torch.randn(batch, 128).",
        )
    forward = in_mode(model, options)
    device = chosen_device(options)
    module = module_of(model)
    if module is not None:
        module.to(device)
    by_label = {"": inputs} if shapes is None else variants_of(shapes, inputs)
    variants, keywords = placed((by_label, dict(keyword_inputs)), device)
    shaped = None if shapes is None else CallsOfEachShape(forward, variants, keywords)
    once = shaped or partial(forward, *variants[""], **keywords)
    inference_mode = torch.inference_mode  # a local name: the look-up would be part of the call

    def call() -> Any:
        with inference_mode():
            return once()

    def accuracy() -> tuple[Any, Any]:
        candidate = call()
        references = float64_reference(model, tuple(variants.values()), keywords)
        return candidate, references if shaped else references[0]

    wait = getattr(torch, device.type).synchronize if device.type != "cpu" else lambda: None
    compiled = options.mode != "eager"
    metrics = tuple(shaped.metrics(wait, compiled=compiled)) if shaped else ()
    return work_of(options, device, call, accuracy=accuracy, metrics=metrics)


Forward = Callable[[tuple[Any, ...], Any], Any]
"""Forward and loss of a training step: called with the inputs and the target, returns the loss."""


def training_work(
    model: Any,
    inputs: Any,
    target: Any,
    loss: Callable[..., Any] | None,
    optimizer: Any,
    options: ModelOptions,
) -> Work:
    """Return the work of one step."""
    check_not_compiled(model)
    forward = in_mode(_objective(model, loss), options)
    device = chosen_device(options)
    model.to(device)
    if isinstance(loss, torch.nn.Module):
        loss.to(device)
    chosen_optimizer = _optimizer(optimizer, model)
    arguments = placed(inputs if isinstance(inputs, tuple) else (inputs,), device)
    target = placed(target, device)
    # local names: the look-ups would be part of the call
    zero_grad, step_parameters = chosen_optimizer.zero_grad, chosen_optimizer.step

    def step() -> Any:
        zero_grad(set_to_none=True)
        value = forward(arguments, target)
        value.backward()
        step_parameters()
        return value.detach()

    accuracy = _gradients_to_compare(forward, model, loss, arguments, target, zero_grad)
    return work_of(options, device, step, accuracy=accuracy)


def _gradients_to_compare(
    forward: Forward,
    model: Any,
    loss: Callable[..., Any] | None,
    arguments: tuple[Any, ...],
    target: Any,
    zero_grad: Callable[..., None],
) -> Callable[[], tuple[Any, Any]]:
    """Return a function that returns the gradients and those of a float64 copy.

    Both start from the state that ``model`` has now, before any step.
    """
    at_start = _state(model)

    def accuracy() -> tuple[Any, Any]:
        now = _state(model)
        model.load_state_dict(at_start)
        try:
            candidate = _gradients(forward, model, arguments, target)
            model_float64, loss_float64 = float64_copy((model, loss))
            arguments_float64, target_float64 = doubled((arguments, target))
            reference = reference_output(
                lambda: _gradients(
                    _objective(model_float64, loss_float64),
                    model_float64,
                    arguments_float64,
                    target_float64,
                )
            )
        finally:
            model.load_state_dict(now)
            zero_grad(set_to_none=True)
        return candidate, reference

    return accuracy


def _objective(model: Any, loss: Callable[..., Any] | None) -> Forward:
    """Return forward and loss as one function, so that they are compiled as one."""

    def objective(arguments: tuple[Any, ...], target: Any) -> Any:
        output = model(*arguments)
        return output if loss is None else loss(output, target)

    return objective


def _gradients(forward: Forward, model: Any, arguments: tuple[Any, ...], target: Any) -> Any:
    """Return loss and gradients, which are cloned as a CUDA graph's next run overwrites them."""
    model.zero_grad(set_to_none=True)
    value = forward(arguments, target)
    value.backward()
    gradients = {
        name: parameter.grad.detach().clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    model.zero_grad(set_to_none=True)
    return {"loss": value.detach().clone(), "gradients": gradients}


def _state(model: Any) -> dict[str, Any]:
    return {
        name: value.detach().to("cpu", copy=True)
        if isinstance(value, torch.Tensor)
        else copy.deepcopy(value)
        for name, value in model.state_dict().items()
    }


def _optimizer(given: Any, model: Any) -> torch.optim.Optimizer:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if given is None:
        return torch.optim.SGD(parameters, lr=_LEARNING_RATE)
    optimizer = given if isinstance(given, torch.optim.Optimizer) else given(parameters)
    optimized = {id(each) for group in optimizer.param_groups for each in group["params"]}
    if not any(id(parameter) in optimized for parameter in parameters):
        raise error_here(
            "bad-benchmark",
            f"the optimizer holds none of {type(model).__name__}'s parameters",
            "Make it from this model's parameters().",
        )
    return optimizer


# Several shapes.

Variants = Mapping[str, tuple[Any, ...]]
"""The model's positional inputs, by the label of their shapes."""


def variants_of(shapes: Sequence[Any], inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the inputs of each entry of ``shapes``, by label. BenchmarkError if one is unfit.

    An entry that is a tensor is the only input, and a tuple of inputs has all of them. A tuple of
    numbers is a shape: the input is like the benchmark's one input, with that shape and new random
    values.
    """
    variants: dict[str, Any] = {}
    for entry in shapes:
        arguments = _arguments(entry, inputs)
        label = _label(arguments)
        if label in variants:
            raise error_here("bad-shapes", f"shapes has {label} twice", _ADVICE)
        variants[label] = arguments
    if not variants:
        raise error_here("bad-shapes", "shapes is empty", _ADVICE)
    return variants


def _arguments(entry: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(entry, torch.Tensor):
        return (entry,)
    entries = tuple(entry) if isinstance(entry, (list, tuple)) else ()
    if entries and all(type(size) is int and size >= 0 for size in entries):
        (like,) = inputs if len(inputs) == 1 else (None,)
        if isinstance(like, torch.Tensor) and like.is_floating_point():
            return (torch.randn(entries, dtype=like.dtype),)
    elif entries and not any(type(item) is int for item in entries):
        return entries
    raise error_here("bad-shapes", f"shapes has {str(entry)[:80]!r}", _ADVICE)


def _label(arguments: tuple[Any, ...]) -> str:
    tensors = (leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor))
    sizes = ("x".join(map(str, tensor.shape)) or "0d" for tensor in tensors)
    return fit_label("_".join(sizes) or "none")


class CallsOfEachShape:
    """Calls the model with each variant in turn. Its first calls show which variants compiled."""

    def __init__(
        self, forward: Callable[..., Any], variants: Variants, keywords: Mapping[str, Any]
    ) -> None:
        self._forward = forward
        self._keywords = keywords
        self.variants = variants
        self._compiled_at_first: dict[str, bool] = {}  # empty until the first call

    def __call__(self) -> list[Any]:
        """Return the outputs of all variants."""
        if self._compiled_at_first:
            return [self._forward(*variant, **self._keywords) for variant in self.variants.values()]
        return [self._first_call(label) for label in self.variants]

    def _first_call(self, label: str) -> Any:
        before = frames_traced()
        output = self._forward(*self.variants[label], **self._keywords)
        self._compiled_at_first[label] = frames_traced() > before
        return output

    def metrics(self, synchronize: Callable[[], None], *, compiled: bool) -> Iterator[ExtraMetric]:
        """Yield each shape's latency and, for compiled work, whether its first call compiled."""
        for label in self.variants:
            metric = Metric(f"latency_{label}", "s", "per_worker", 0.10, "info")
            yield ExtraMetric(metric, partial(self._latency, label, synchronize))
        for label in self.variants if compiled else ():
            metric = Metric(f"compiles_{label}", "count", "exact", 0.0, "warn", absolute=True)
            yield ExtraMetric(metric, partial(self._compiled_at_first.__getitem__, label))

    def _latency(self, label: str, synchronize: Callable[[], None]) -> float:
        arguments, taken = self.variants[label], list[float]()
        ended = perf_counter() + _LATENCY_S
        with torch.inference_mode():
            while len(taken) < _LATENCY_CALLS or perf_counter() < ended:
                synchronize()
                begun = perf_counter()
                self._forward(*arguments, **self._keywords)
                synchronize()
                taken.append(perf_counter() - begun)
        return median(taken)
