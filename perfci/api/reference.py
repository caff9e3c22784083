"""The reference of the accuracy metric: the eager model, in float64.

What can't be had is a ValueError that says why; the metric is then missing with that reason.
"""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from perfci.api.placement import module_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
MOST_COPIED = 256 << 20
"""Bytes of parameters up to which the reference is a copy in float64: three times the model."""
_IN_PLACE = frozenset(
    f"__i{name}__"
    for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or",
                 "xor", "lshift", "rshift")
)  # fmt: skip
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


def float64_reference(model: Callable[..., Any], inputs: Sequence[Any], keywords: Any) -> list[Any]:
    """Return the model's outputs in float64, one for each of ``inputs``' arguments.

    A large model isn't copied: its parameters are converted one at a time, as they are used.
    ValueError, which says why, where there are none.
    """
    wide, wide_keywords = doubled((tuple(inputs), keywords))
    module = module_of(model)
    size = sum(one.nbytes for one in module.parameters()) if module is not None else 0
    if module is None or size <= MOST_COPIED:
        twin = float64_copy(model)
        with torch.no_grad():
            return [reference_output(partial(twin, *one, **wide_keywords)) for one in wide]
    with torch.no_grad(), _Widening(module):
        return [
            reference_output(
                partial(model, *one, **wide_keywords),
                f"with {size / 2**30:.1f} GiB of parameters, too many for a copy, ",
            )
            for one in wide
        ]


class _Widening(TorchFunctionMode):  # type: ignore[misc]
    """Gives torch's functions a model's tensors in float64, each for as long as it is used.

    Whoever asks sees what a converted model would show. A function that would change one of them
    would change a copy, so it is refused.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        state = (*module.parameters(), *module.buffers())
        self._own = {id(one): one for one in state}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if args and id(args[0]) in self._own and _changes(name):
            raise TypeError(f"Tensor.{name} changes the model itself")
        return func(*tree_map(self._wide, args), **tree_map(self._wide, kwargs or {}))

    def _wide(self, leaf: Any) -> Any:
        return _doubled_leaf(leaf) if id(leaf) in self._own else leaf


def _changes(function: str) -> bool:
    if function.startswith("__"):
        return function in {"__setitem__", "__set__"} or function in _IN_PLACE
    return function.endswith("_")


def doubled(tree: Any) -> Any:
    """Return ``tree`` with floating tensors in float64; integers stay what they are."""
    return tree_map(_doubled_leaf, tree)


def reference_output(compute: Callable[[], Any], why: str = "") -> Any:
    """Return what ``compute`` gives in float64. ValueError where it fails or is random."""
    try:
        first, second = compute(), compute()
    except Exception as error:
        raise ValueError(
            f"no float64 reference: {why}the model doesn't run in float64 ({_first_line(error)})"
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
