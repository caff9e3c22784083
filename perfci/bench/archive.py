"""Saved files, looked at without loading them: what one is, and which parts are pickles.

torch.export.load falls back to plain unpickling for example inputs, constants and weights that
need it, so an exported program can carry a pickle; those are found here. What remains is not
a sandbox: torch evaluates the graph's symbolic expressions and guards, which are text.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Literal

import torch

Kind = Literal["exported", "torchscript", "pickle", "unknown"]

_PICKLE_PROTOCOL_2 = b"\x80\x02"
_OBJECTS = ("custom_obj_", "opaque_obj_")
_PICKLES = (".pt", ".pkl")


def kind_of(path: Path) -> Kind:
    """Return what the file at ``path`` is, by its contents. OSError where it can't be read."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return "pickle" if file.read(2) == _PICKLE_PROTOCOL_2 else "unknown"
    names = [PurePosixPath(name) for name in _names(path)]
    inner = {"/".join(name.parts[1:]) for name in names}
    if "archive_format" in inner or "serialized_exported_program.json" in map(str, names):
        return "exported"
    if "constants.pkl" in inner:
        return "torchscript"
    return "pickle" if "data.pkl" in inner else "unknown"


def pickled_parts(path: Path) -> tuple[str, ...]:
    """Return the parts of an exported program that only plain unpickling could load."""
    names = _names(path)
    if len(set(names)) != len(names):  # two readers could see two different files
        return ("an entry that is there twice",)
    with zipfile.ZipFile(path) as archive:
        by_flag = _flagged(archive, names)
        return tuple(
            name
            for name in names
            if PurePosixPath(name).name.startswith(_OBJECTS)
            or (
                (name.endswith(_PICKLES) or PurePosixPath(name).name in by_flag)
                and not _is_weights_only(archive.read(name))
            )
        )


def _names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [entry.filename for entry in archive.infolist()]


def _flagged(archive: zipfile.ZipFile, names: list[str]) -> set[str]:
    """Names of the payloads that a weights or constants configuration marks as pickled."""
    flagged = set()
    for name in names:
        if name.endswith("_config.json"):
            entries = json.loads(archive.read(name))["config"].values()
            flagged |= {
                PurePosixPath(entry["path_name"]).name for entry in entries if entry["use_pickle"]
            }
    return flagged


def _is_weights_only(data: bytes) -> bool:
    if not data:
        return True
    try:
        torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 - whatever it is, it isn't plain tensors
        return False
    return True
