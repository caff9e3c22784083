"""One training step as work: forward and loss (compiled as one), backward, optimizer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import torch

from perfci.api.torch_models import (
    check_callable,
    check_items,
    check_not_compiled,
    chosen_device,
    doubled,
    float64_copy,
    in_mode,
    placed,
    reference_output,
)
from perfci.collecting import Work
from perfci.errors import BenchmarkError

_LEARNING_RATE = 1e-3
"""Of the SGD that stands in where no optimizer is given: small, so that long runs stay finite."""

Forward = Callable[[tuple[Any, ...], Any], Any]


def training_work(
    model: Any,
    inputs: Any,
    target: Any,
    *,
    loss: Callable[..., Any] | None,
    optimizer: Any,
    mode: str,
    items: float | None,
    device: str | torch.device | None,
    compile_options: Mapping[str, Any] | None,
    where: str,
) -> Work:
    """Return the work of one step. Errors begin with ``where``."""
    _check_model(model, where)
    check_items(items, where)
    if loss is not None:
        check_callable(loss, "the loss", where)
    check_not_compiled(model, where)
    forward = in_mode(_objective(model, loss), mode, compile_options, where)
    place = chosen_device(device, where)
    model.to(place)
    if isinstance(loss, torch.nn.Module):
        loss.to(place)
    stepper = _optimizer(optimizer, model, where)
    arguments = placed(inputs if isinstance(inputs, tuple) else (inputs,), place)
    goal = placed(target, place)
    zero_grad, step_parameters = stepper.zero_grad, stepper.step

    def step() -> Any:
        zero_grad(set_to_none=True)
        value = forward(arguments, goal)
        try:
            value.backward()
        except Exception as error:
            if not _is_scalar(value):
                _refuse_loss(value, loss, where, error)
            raise
        step_parameters()
        return value.detach()

    return Work(
        call=step,
        mode=mode,
        compiled=mode != "eager",
        device=str(place),
        items=items,
        accuracy=_accuracy(forward, model, loss, arguments, goal, zero_grad),
    )


def _accuracy(
    forward: Forward,
    model: Any,
    loss: Callable[..., Any] | None,
    arguments: tuple[Any, ...],
    goal: Any,
    zero_grad: Callable[..., None],
) -> Callable[[], tuple[Any, Any]]:
    """Return what compares gradients with float64's, from the state that ``model`` has now."""
    at_start = _state(model)

    def accuracy() -> tuple[Any, Any]:
        now = _state(model)
        model.load_state_dict(at_start)
        try:
            candidate = _gradients(forward, model, arguments, goal)
            twin, twin_loss = float64_copy((model, loss))
            wide = doubled((arguments, goal))
            reference = reference_output(
                lambda: _gradients(_objective(twin, twin_loss), twin, *wide)
            )
        finally:
            model.load_state_dict(now)
            zero_grad(set_to_none=True)
        return candidate, reference

    return accuracy


def _objective(model: Any, loss: Callable[..., Any] | None) -> Forward:
    """Return forward and loss as one function, so that a mode compiles them as one."""

    def objective(arguments: tuple[Any, ...], goal: Any) -> Any:
        output = model(*arguments)
        return output if loss is None else loss(output, goal)

    return objective


def _gradients(forward: Forward, model: Any, arguments: tuple[Any, ...], goal: Any) -> Any:
    """Return loss and gradients by name, cloned: a CUDA graph's next run overwrites its own."""
    model.zero_grad(set_to_none=True)
    value = forward(arguments, goal)
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


def _check_model(model: Any, where: str) -> None:
    if not isinstance(model, torch.nn.Module):
        raise BenchmarkError(
            "not-a-module",
            f"{where}: training_step got {model!r}, not a torch.nn.Module",
            "Give the module itself, so that its parameters can be trained.",
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise BenchmarkError(
            "nothing-to-train",
            f"{where}: no parameter of {type(model).__name__} requires a gradient",
            "Unfreeze one, or measure it with perfci.inference.",
        )


def _optimizer(given: Any, model: Any, where: str) -> Any:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if given is None:
        return torch.optim.SGD(parameters, lr=_LEARNING_RATE)
    optimizer = given
    if not isinstance(given, torch.optim.Optimizer) and callable(given):
        optimizer = given(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise BenchmarkError(
            "not-an-optimizer",
            f"{where}: the optimizer is {optimizer!r}",
            "Give a torch.optim.Optimizer, or a callable that makes one: "
            "optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-3).",
        )
    its_own = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(parameter) in its_own for parameter in parameters):
        raise BenchmarkError(
            "optimizer-of-another-model",
            f"{where}: the optimizer holds none of {type(model).__name__}'s parameters",
            "Make it from this model's parameters().",
        )
    return optimizer


def _is_scalar(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _refuse_loss(value: Any, loss: Any, where: str, cause: Exception) -> NoReturn:
    shape = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
    source = "the loss" if loss is not None else "the model's output (there is no `loss`)"
    raise BenchmarkError(
        "loss-not-scalar",
        f"{where}: {source} is no scalar tensor but of {shape}",
        "Give loss=, a function of output and target whose result is one number.",
    ) from cause
