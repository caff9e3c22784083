"""Running a model: its mode, its device, and the float64 reference of its accuracy.

If a reference can't be computed, ValueError is raised, and the metric is missing with that reason.
"""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from perfci.api import ModelOptions, error_here, is_positive
from perfci.collector import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODES = ("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKEND_PREFIX = "backend:"
"""Prefix for torch.compile's backends. ``backend:eager`` compiles with Dynamo's backend ``eager``,
while the mode ``eager`` doesn't compile at all.
"""
T = TypeVar("T")
MOST_COPIED = 256 << 20
"""Most bytes of parameters with which the reference is a copy. Model and copy then take three times
the model's memory.
"""
_FLOAT64 = {
    dtype: torch.complex128 if dtype.is_complex else torch.float64
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
    and (dtype.is_complex or dtype.is_floating_point)
    and dtype not in {torch.float64, torch.complex128}
}
"""By coarser floating dtype, the one that a reference has instead."""
_ONLY_READ = frozenset({"__int__", "__index__", "__invert__"})
"""Methods with names like those of methods that change a tensor."""
_CASTS = frozenset({"float", "half", "bfloat16"})
"""Methods of a tensor that convert it."""


def in_mode(target: Callable[..., Any], options: ModelOptions) -> Callable[..., Any]:
    """Return ``target``, compiled if the mode says so. BenchmarkError if torch refuses options."""
    mode = options.mode
    check_not_compiled(target)
    if mode == "eager":
        return target
    if mode == "default":
        chosen = {}  # torch takes `options` only without a mode, which means the same
    elif mode in MODES:
        chosen = {"mode": mode}
    else:
        chosen = {"backend": mode.removeprefix(BACKEND_PREFIX)}
    keywords = {**chosen, **(options.compile_options or {})}
    try:
        compiled: Callable[..., Any] = torch.compile(target, **keywords)
    except (RuntimeError, TypeError, ValueError) as error:
        raise error_here(
            "bad-benchmark",
            f"torch.compile refused {keywords}: {error}",
            f"Modes: {', '.join(MODES)}, and the names of torch.compile's backends. torch takes "
            "`options` with the mode `default` only.",
        ) from error
    return compiled


def check_not_compiled(target: Any) -> None:
    """Raise BenchmarkError if ``target`` is compiled already: mode eager would not be eager."""
    in_place = getattr(target, "_compiled_call_impl", None) is not None
    wrapped = type(target).__name__ == "OptimizedModule" or (
        hasattr(target, "_torchdynamo_orig_callable")
        and not getattr(target, "_torchdynamo_disable", False)
    )
    if in_place or wrapped:
        raise error_here(
            "already-compiled",
            "the model is compiled already",
            "Give the model itself and say how to compile it: mode='default'.",
        )


def chosen_device(options: ModelOptions) -> torch.device:
    """Return the device, by default a GPU if there is one."""
    if options.device is not None:
        return torch.device(options.device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def placed(tree: Any, device: torch.device) -> Any:
    """Return ``tree`` with all that can be moved (tensors, modules, batches) on ``device``."""
    return tree_map(
        lambda leaf: leaf.to(device) if _movable(leaf) else leaf, tree, is_leaf=_movable
    )


def module_of(target: Any) -> torch.nn.Module | None:
    """Return the module that ``target`` is, or is a method of."""
    owner = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


def work_of(
    options: ModelOptions, device: torch.device, call: Callable[[], Any], **more: Any
) -> Work:
    """Return the work of a call. Raises BenchmarkError if ``items`` isn't a positive number."""
    if options.items is not None and not is_positive(options.items):
        raise error_here(
            "bad-benchmark",
            f"items is {options.items!r}",
            "Write how many items one call handles, such as the batch size: items=16.",
        )
    return Work(
        call=call,
        compiled=options.mode != "eager",
        device=str(device),
        items=options.items,
        **more,
    )


def _movable(value: Any) -> bool:
    return callable(getattr(value, "to", None)) and not isinstance(value, type)


def float64_copy(target: T) -> T:
    """Return a deep copy of a callable, or of a tuple of them, with float64 parameters."""
    try:
        with warnings.catch_warnings():
            # perfci makes the copy, so a user doesn't need the deprecations that torch reports.
            warnings.simplefilter("ignore")
            copied = copy.deepcopy(target)
        for part in copied if isinstance(copied, tuple) else (copied,):
            module = module_of(part)
            if module is not None:
                module.double()
    except Exception as error:
        raise ValueError(
            f"no float64 reference: the model can't be copied and converted ({first_line(error)})"
        ) from error
    return copied


def float64_reference(model: Callable[..., Any], inputs: Sequence[Any], keywords: Any) -> list[Any]:
    """Return the model's outputs in float64, one for each tuple of arguments in ``inputs``.

    A large model isn't copied. Raises ValueError with the reason if there is no reference.
    """
    wide, wide_keywords = doubled((tuple(inputs), keywords))
    module = module_of(model)
    size = sum(parameter.nbytes for parameter in module.parameters()) if module is not None else 0
    why, kept = "", None
    if size <= MOST_COPIED:
        model = float64_copy(model)
    else:
        why, kept = f"with {size / 2**30:.1f} GiB of parameters, too many for a copy, ", module
    with torch.no_grad():
        calls = (partial(model, *arguments, **wide_keywords) for arguments in wide)
        return [reference_output(call, why, kept) for call in calls]


class _Float64(TorchFunctionMode):  # type: ignore[misc]
    """Has torch's functions compute in float64, whatever the model converts its tensors to.

    Coarser tensors, such as a model's that isn't copied, are converted for each function that takes
    them. A query for a dtype is answered as by a converted model. A function that changes a tensor
    of the model ``kept`` would change only the converted copy, so it is refused.
    """

    def __init__(self, kept: torch.nn.Module | None = None) -> None:
        super().__init__()
        kept = kept or torch.nn.Module()
        self._state = {id(tensor) for tensor in (*kept.parameters(), *kept.buffers())}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        wide = tree_map(_widened, args)
        if args and _changes(name):
            if id(args[0]) in self._state:
                raise TypeError(f"Tensor.{name} changes the model itself")
            wide = (args[0], *wide[1:])
        if name in _CASTS:
            return wide[0].to(_FLOAT64.get(wide[0].dtype, torch.float64))
        return func(*wide, **tree_map(_widened, kwargs or {}))


def _widened(leaf: Any) -> Any:
    """Return a floating tensor or dtype as float64's, and anything else as it is."""
    if isinstance(leaf, torch.dtype):
        return _FLOAT64.get(leaf, leaf)
    if isinstance(leaf, torch.Tensor) and leaf.dtype in _FLOAT64:
        return leaf.to(_FLOAT64[leaf.dtype])
    return leaf


def _changes(function: str) -> bool:
    if function.startswith("__"):
        return function.startswith(("__set", "__i")) and function not in _ONLY_READ
    return function.endswith("_")


def doubled(tree: Any) -> Any:
    """Return ``tree`` with floating tensors in float64. Integer tensors keep their dtype."""

    def doubled_leaf(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex()):
            return _widened(leaf).detach().requires_grad_(leaf.requires_grad)
        return leaf

    return tree_map(doubled_leaf, tree)


def reference_output(
    compute: Callable[[], Any], why: str = "", kept: torch.nn.Module | None = None
) -> Any:
    """Return the result of ``compute`` in float64, where it converts nothing to a coarser dtype.

    ValueError if it fails, if it isn't in float64, or if two results differ. It must not change
    the model ``kept``.
    """
    try:
        with _Float64(kept):
            first, second = compute(), compute()
    except Exception as error:
        raise ValueError(
            f"no float64 reference: {why}the model doesn't run in float64 ({first_line(error)})"
        ) from error
    for leaf in tree_leaves(first):
        if isinstance(leaf, torch.Tensor) and leaf.dtype in _FLOAT64:
            raise ValueError(f"no float64 reference: the model itself computes in {leaf.dtype}")
    # A random output would be compared with another draw: a loss that means nothing.
    if not _same(first, second):
        raise ValueError(
            "no float64 reference: two calls with the same inputs differ (dropout in training "
            "mode, or state kept between calls?)"
        )
    return first


def _same(first: Any, second: Any) -> bool:
    pairs = zip(tree_leaves(first), tree_leaves(second), strict=True)
    return all(
        leaf.shape == other.shape and torch.allclose(leaf, other, equal_nan=True)
        for leaf, other in pairs
        if isinstance(leaf, torch.Tensor) and isinstance(other, torch.Tensor)
    )


def first_line(error: Exception) -> str:
    """Return an error's type and the first line of its message."""
    return f"{type(error).__name__}: {str(error).strip().split(chr(10), 1)[0][:200]}"
