"""HOW a benchmark is written and found.

Imports only the standard library, and torch if a benchmark asks for it. Definitions raise
``BenchmarkError`` with file and line. Nothing here measures or prints.
"""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from binascii import crc32
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.errors import BenchmarkError
from perfci.units import parse_share

if TYPE_CHECKING:
    import torch

PACKAGE = str(Path(__file__).parent.parent) + "/"
"""Beginning of the paths of perfci's own files."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.+\-]+")
"""Characters that can't be part of a name or a label."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Matches the address in the representation of an object, which differs between processes."""
_LONGEST_LABEL = 60
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""The variables from which libraries take their number of threads."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is run."""

    mode: str = "eager"
    items: float | None = None
    device: str | torch.device | None = None
    compile_options: Mapping[str, Any] | None = None


def user_frame() -> str:
    """Return ``file:line`` of the innermost frame outside perfci, or an empty text."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def files_below(where: str, *paths: str) -> tuple[Path, ...]:
    """Return files that are named relative to the calling file ``where`` (``file:line``).

    BenchmarkError for a file that is missing, or isn't in the caller's folder or below it.
    """
    folder = Path(where.rpartition(":")[0]).parent.resolve()
    files = tuple((folder / path).resolve() for path in paths)
    for path, file in zip(paths, files, strict=True):
        if not (file.is_relative_to(folder) and file.is_file()):
            raise BenchmarkError(
                "bad-benchmark",
                f"{where}: {folder.name}/{path} not found",
                "Both sides run head's files of one folder: put this benchmark file next to the "
                "file that it names, and set `benchmarks` in [tool.perfci] to that folder.",
            )
    return files


def error_here(slug: str, wrong: str, advice: str) -> BenchmarkError:
    """Return an error that begins with the line of the benchmark from which perfci was called."""
    return BenchmarkError(slug, f"{user_frame()}: {wrong}", advice)


def require(is_right: object, function: str, wrong: str, advice: str) -> None:
    """Raise BenchmarkError unless the arguments of ``perfci.FUNCTION`` are right."""
    if not is_right:
        raise error_here(f"bad-{function}", f"perfci.{function}: {wrong}", advice)


def required_share(function: str, threshold: object) -> float:
    """Return the threshold of ``perfci.FUNCTION`` as a share. BenchmarkError if it isn't one."""
    try:
        return parse_share(threshold)
    except ValueError as error:
        wrong = f"perfci.{function}: its `threshold` is {threshold!r}"
        raise error_here(f"bad-{function}", wrong, f"Write {error}.") from error


def is_count(value: object) -> bool:
    """Return whether ``value`` is a whole number above zero."""
    return type(value) is int and value > 0


def is_positive(value: object) -> bool:
    """Return whether ``value`` is a finite number above zero."""
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def fit_name(text: str) -> str:
    """Return a benchmark's name with the characters replaced that an id can't have."""
    return _UNFIT.sub("_", text).lstrip(".-+") or "_"


def fit_label(text: str, taken: Collection[str] = ()) -> str:
    """Return the label of an axis' value, the same in each process.

    It has no addresses of objects. A text without letters and digits is spelled out, and one that
    is too long ends in a checksum. A label that is ``taken`` gets a number.
    """
    text = _ADDRESS.sub("", text)
    if not any(map(str.isalnum, text)) and _UNFIT.search(text or " "):
        text = "-".join(unicodedata.name(character, "") for character in text).lower() or "empty"
    label = _UNFIT.sub("_", text).strip("_") or _checksum(text)
    if len(label) > _LONGEST_LABEL:
        end = f"-{_checksum(text)}"
        label = label[: _LONGEST_LABEL - len(end)] + end
    if label not in taken:
        return label
    end = f"-{len(taken) + 1}"
    return label[: _LONGEST_LABEL - len(end)] + end


def _checksum(text: str) -> str:
    return f"{crc32(text.encode()):08x}"
