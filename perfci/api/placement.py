"""Placement: which device the work runs on, and moving model and inputs there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map

from perfci.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable


def chosen_device(device: str | torch.device | None, where: str) -> torch.device:
    """Return the device asked for, or the GPU where there is one; BenchmarkError if unusable."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        first_line = str(error).strip().split("\n", 1)[0]
        raise BenchmarkError(
            "device-unusable",
            f"{where}: device {device!r} can't be used here: {first_line}",
            "Leave `device` out to take a GPU where there is one, or give the benchmark a `skip`.",
        ) from error
    return chosen


def placed(tree: Any, device: torch.device) -> Any:
    """Return ``tree`` with all that can be moved (tensors, modules, batches) on ``device``."""
    return tree_map(
        lambda leaf: leaf.to(device) if _movable(leaf) else leaf, tree, is_leaf=_movable
    )


def module_of(target: Any) -> torch.nn.Module | None:
    """Return the module that ``target`` is, or is a method of."""
    owner = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


def check_callable(target: Callable[..., Any], what: str, where: str) -> None:
    """Raise BenchmarkError where ``target`` can't be called."""
    if not callable(target) or isinstance(target, type):
        raise BenchmarkError(
            "not-callable",
            f"{where}: {what} is {target!r}, which isn't a callable to measure",
            "Give an instance of a torch.nn.Module or a function of tensors.",
        )


def check_items(items: float | None, where: str) -> None:
    """Raise BenchmarkError where ``items`` isn't a positive finite number."""
    if items is None:
        return
    number = isinstance(items, (int, float)) and not isinstance(items, bool)
    if not number or not math.isfinite(items) or items <= 0:
        raise BenchmarkError(
            "bad-items",
            f"{where}: items is {items!r}",
            "Write how many items one call handles, such as the batch size: items=16.",
        )


def _movable(value: Any) -> bool:
    return callable(getattr(value, "to", None)) and not isinstance(value, type)
