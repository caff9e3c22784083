"""torch's compiler, imported by an ancestor for the compiled cases of both sides.

Their first call would import it: 2 to 3 s of each worker's start, the same on both sides.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from perfci.errors import Unusable
from perfci.model.worker import UNLIKE_FRESH

DYNAMO, INDUCTOR = "torch._dynamo", "torch._inductor.compile_fx"
_SET_BY_INDUCTOR = frozenset({"_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"})
"""What it sets as it compiles, and reads later than at its import."""


def importable(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the compiler's modules that an ancestor may import.

    Where Triton is installed Inductor starts processes as it is imported.
    """
    has_triton = importlib.util.find_spec("triton") is not None
    return tuple(name for name in names if name != INDUCTOR or not has_triton)


def forget_places() -> None:
    """Forget the folder of temporary files that the compiler chose: each worker has its own."""
    tempfile.tempdir = None


def use_own_places() -> None:
    """Let Inductor keep what it makes of C++ headers where this process would have put that."""
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if hasattr(codecache, "_HEADER_DIR"):
        codecache._HEADER_DIR = f"{codecache.default_cache_dir()}/precompiled_headers"  # noqa: SLF001
        codecache._HEADER_LOCK_DIR = f"{codecache._HEADER_DIR}/locks"  # noqa: SLF001


def require_same_environment(before: Mapping[str, str]) -> None:
    """Raise Unusable where set-up changed the environment: the compiler has read it already."""
    names = {*before, *os.environ} - _SET_BY_INDUCTOR
    changed = sorted(name for name in names if before.get(name) != os.environ.get(name))
    if changed:
        raise Unusable(UNLIKE_FRESH, f"set-up sets the variable {changed[0]}")


def require_compiled(*, compiled: bool) -> None:
    """Raise Unusable where neither set-up nor the first call compiled: they import no compiler."""
    if not compiled:
        raise Unusable(UNLIKE_FRESH, "neither set-up nor the first call compiled anything")
