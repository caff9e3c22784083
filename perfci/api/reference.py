"""The reference of the accuracy metric: the eager model, in float64.

What can't be had is a ValueError that says why; the metric is then missing with that reason.
"""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils._pytree import tree_leaves, tree_map

from perfci.api.placement import module_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_WIDER = {torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def float64_copy(target: T) -> T:
    """Return a deep copy of a callable, or of a tuple of them, with float64 parameters."""
    try:
        with warnings.catch_warnings():
            # Copying is perfci's wish; torch's deprecations on the way aren't the user's.
            warnings.simplefilter("ignore")
            twin = copy.deepcopy(target)
        for part in twin if isinstance(twin, tuple) else (twin,):
            module = module_of(part)
            if module is not None:
                module.double()
    except Exception as error:
        raise ValueError(
            f"no float64 reference: the model can't be copied and converted ({_first_line(error)})"
        ) from error
    return twin


def doubled(tree: Any) -> Any:
    """Return ``tree`` with floating tensors in float64; integers stay what they are."""
    return tree_map(_doubled_leaf, tree)


def reference_output(compute: Callable[[], Any]) -> Any:
    """Return what ``compute`` gives in float64. ValueError where it fails or is random."""
    try:
        first, second = compute(), compute()
    except Exception as error:
        raise ValueError(
            f"no float64 reference: the model doesn't run in float64 ({_first_line(error)})"
        ) from error
    # A random output would be compared with another draw: a loss that means nothing.
    if not _same(first, second):
        raise ValueError(
            "no float64 reference: two calls with the same inputs differ (dropout in training "
            "mode, or state kept between calls?)"
        )
    return first


def _doubled_leaf(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if leaf.is_complex():
        return leaf.to(_WIDER.get(leaf.dtype, leaf.dtype))
    if not leaf.is_floating_point():
        return leaf
    return leaf.detach().double().requires_grad_(leaf.requires_grad)


def _same(first: Any, second: Any) -> bool:
    pairs = zip(tree_leaves(first), tree_leaves(second), strict=True)
    return all(
        one.shape == two.shape and torch.allclose(one, two, equal_nan=True)
        for one, two in pairs
        if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().split(chr(10), 1)[0][:200]}"
