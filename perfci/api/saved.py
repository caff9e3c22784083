"""Work from a saved model and its saved inputs: a benchmark by configuration alone."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import torch

from perfci.api.definition import ModelOptions
from perfci.api.torch_models import chosen_device, first_line
from perfci.api.torch_work import inference_work
from perfci.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perfci.collector import Work
    from perfci.model.worker import SavedModel


# Inspecting saved files without loading them: the kind of a file, and which parts are pickles.

Kind = Literal["exported", "torchscript", "pickle", "unknown"]

_PICKLE_PROTOCOL_2 = b"\x80\x02"
"""First bytes of a pickle, as torch wrote models before its zip format."""
_OBJECTS = ("custom_obj_", "opaque_obj_")
"""Prefixes of entries of an exported program that are always pickled objects."""
_PICKLES = (".pt", ".pkl")


def kind_of(path: Path) -> Kind:
    """Return the kind of the file at ``path``, by its contents. OSError if it can't be read."""
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
    """Return the payloads that a weights or constants configuration marks as pickled."""
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


_SAVE = "Save it with torch.export.save(torch.export.export(model, inputs), path)"


def saved_work(saved: SavedModel, mode: str) -> Work:
    """Return the work of one inference call of a saved model. BenchmarkError names the file."""
    model_path, inputs_path = Path(saved.model_path), Path(saved.inputs_path)
    _check_is_file(model_path, f"model_path of `{saved.name}`")
    _check_is_file(inputs_path, f"inputs_path of `{saved.name}`")
    inputs, keyword_inputs = _inputs(inputs_path)
    model = _model(model_path, allow_pickle=saved.allow_pickle)
    options = ModelOptions(str(model_path), mode, saved.items)
    return inference_work(model, inputs, keyword_inputs, options)


def _check_is_file(path: Path, option: str) -> None:
    if not path.is_file():
        raise BenchmarkError(
            "saved-file-missing",
            f"{path}: there is no such file ({option})",
            "Check the path in [[tool.perfci.saved]], and that the file is there on both sides.",
        )


def _model(path: Path, *, allow_pickle: bool) -> Callable[..., Any]:
    try:
        kind = kind_of(path)
        unsafe = pickled_parts(path) if kind == "exported" else ()
    except Exception as error:
        raise _unreadable(path, error) from error
    if kind == "unknown":
        raise BenchmarkError(
            "saved-not-a-model",
            f"{path}: neither an exported program nor TorchScript nor anything torch saved",
            f"{_SAVE}.",
        )
    if kind == "pickle":
        return _pickled(path, allow_pickle=allow_pickle)
    if unsafe and not allow_pickle:
        raise _refused(path, f"the exported program holds pickled objects ({', '.join(unsafe)})")
    try:
        return _exported(path) if kind == "exported" else _torchscript(path)
    except Exception as error:
        raise _unreadable(path, error) from error


def _exported(path: Path) -> Callable[..., Any]:
    program = torch.export.load(path)
    place = chosen_device(ModelOptions(str(path)))
    if place.type != "cpu":
        # A graph may name its device; moving the module alone would leave those tensors behind.
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, str(place))
    module: Callable[..., Any] = program.module()
    return module


def _torchscript(path: Path) -> Callable[..., Any]:
    with warnings.catch_warnings():
        # TorchScript is deprecated, but many files are still written in it. perfci makes the call,
        # so a user doesn't need the warning.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch.jit")
        warnings.filterwarnings("ignore", message=".*torch.jit.load.*")
        module: Callable[..., Any] = torch.jit.load(path, map_location="cpu").eval()
    return module


def _pickled(path: Path, *, allow_pickle: bool) -> Callable[..., Any]:
    if not allow_pickle:
        try:
            torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise _refused(path, "this is a whole pickled module") from error
        raise _weights_alone(path)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise _unreadable(path, error) from error
    if not isinstance(loaded, torch.nn.Module):
        raise _weights_alone(path)
    evaluated: Callable[..., Any] = loaded.eval()
    return evaluated


def _inputs(path: Path) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise BenchmarkError(
            "saved-inputs-unreadable",
            f"{path}: these inputs can't be loaded as tensors alone: {first_line(error)}",
            "Save a tensor, or a tuple or dict of tensors, with torch.save.",
        ) from error
    if isinstance(loaded, torch.Tensor):
        return (loaded,), {}
    if isinstance(loaded, (tuple, list)) and _all_tensors(loaded):
        return tuple(loaded), {}
    names_are_text = isinstance(loaded, dict) and all(isinstance(name, str) for name in loaded)
    if names_are_text and _all_tensors(loaded.values()):
        return (), loaded
    raise BenchmarkError(
        "saved-inputs-not-tensors",
        f"{path}: the inputs are {type(loaded).__name__}, not tensors",
        "Save a tensor, a tuple of tensors, or a dict from parameter names to tensors.",
    )


def _all_tensors(values: Any) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


def _refused(path: Path, what: str) -> BenchmarkError:
    return BenchmarkError(
        "saved-needs-unpickling",
        f"{path}: {what}; loading it would run code from the file",
        f"{_SAVE}; or, where you trust the file, set `allow_pickle = true` in "
        "[[tool.perfci.saved]].",
    )


def _weights_alone(path: Path) -> BenchmarkError:
    return BenchmarkError(
        "saved-weights-alone",
        f"{path}: this holds weights or other data, but no model to call",
        f"{_SAVE}, or write a benchmark file that builds the model and loads these weights.",
    )


def _unreadable(path: Path, error: Exception) -> BenchmarkError:
    return BenchmarkError(
        "saved-model-unreadable",
        f"{path}: this model can't be loaded: {first_line(error)}",
        f"{_SAVE}, with the same torch or an older one than loads it here ({torch.__version__}).",
    )
