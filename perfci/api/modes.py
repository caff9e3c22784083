"""Modes: how a benchmark's model is run, from eager to torch.compile's modes and backends."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any

import torch

from perfci.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MODES = ("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKEND_PREFIX = "backend:"
"""``backend:eager`` is Dynamo's own ``eager`` backend; ``eager`` alone is not compiled at all."""


def check_mode(mode: str, where: str) -> None:
    """Raise BenchmarkError where ``mode`` is neither a mode nor a backend of this torch."""
    if mode in MODES:
        return
    # Listing the backends imports Dynamo (0.6-1 s): only for what is no plain mode.
    backends = tuple(torch._dynamo.list_backends(exclude_tags=()))  # noqa: SLF001
    if isinstance(mode, str) and mode.removeprefix(BACKEND_PREFIX) in backends:
        return
    known = [*MODES, *backends, *(BACKEND_PREFIX + name for name in backends)]
    near = difflib.get_close_matches(str(mode), known, n=1)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    raise BenchmarkError(
        "unknown-mode",
        f"{where}: {mode!r} is neither a mode nor a torch.compile backend",
        f"{hint}Modes: {', '.join(MODES)}. Backends: {', '.join(backends)}.",
    )


def in_mode(
    target: Callable[..., Any], mode: str, options: Mapping[str, Any] | None, where: str
) -> Callable[..., Any]:
    """Return ``target`` as ``mode`` runs it; ``options`` are torch.compile's other keywords."""
    check_mode(mode, where)
    _check_options(options or {}, where)
    check_not_compiled(target, where)
    if mode == "eager":
        return target
    if isinstance(target, torch.jit.ScriptModule):
        raise BenchmarkError(
            "torchscript-not-compilable",
            f"{where}: torch.compile cannot compile TorchScript (mode {mode!r})",
            "Measure it in mode `eager`, or save the model with torch.export.save.",
        )
    keywords = {**_chosen(mode), **(options or {})}
    try:
        compiled: Callable[..., Any] = torch.compile(target, **keywords)
    except (RuntimeError, TypeError, ValueError) as error:
        raise BenchmarkError(
            "compile-refused",
            f"{where}: torch.compile refused {keywords}: {error}",
            "Change mode or compile_options; torch takes no `options` beside a mode but `default`.",
        ) from error
    return compiled


def _chosen(mode: str) -> dict[str, str]:
    if mode == "default":
        return {}  # the same to torch, and it leaves `options` free
    return {"mode": mode} if mode in MODES else {"backend": mode.removeprefix(BACKEND_PREFIX)}


def _check_options(options: Mapping[str, Any], where: str) -> None:
    accepted = set(inspect.signature(torch.compile).parameters) - {"model", "mode", "backend"}
    for name in options:
        if name not in accepted:
            near = difflib.get_close_matches(str(name), accepted, n=1)
            hint = f"Did you mean `{near[0]}`? " if near else ""
            raise BenchmarkError(
                "unknown-compile-option",
                f"{where}: compile_options has {name!r}, which torch.compile doesn't take",
                f"{hint}It takes: {', '.join(sorted(accepted))}; mode and backend go in `mode`.",
            )


def check_not_compiled(target: Any, where: str) -> None:
    """Raise BenchmarkError where ``target`` is compiled already: eager would not be eager."""
    in_place = getattr(target, "_compiled_call_impl", None) is not None
    wrapped = type(target).__name__ == "OptimizedModule" or (
        hasattr(target, "_torchdynamo_orig_callable")
        and not getattr(target, "_torchdynamo_disable", False)
    )
    if in_place or wrapped:
        raise BenchmarkError(
            "already-compiled",
            f"{where}: the model is compiled already",
            "Give the model itself and say how to compile it: mode='default'.",
        )
