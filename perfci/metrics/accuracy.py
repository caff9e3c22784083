"""Distance of the outputs from their float64 reference, and of the ranks' outputs from each other.

A rank of ``perfci.distributed`` sends only a sketch of its output, because the output may be as
large as a model. The sketch has random projections. Their distances estimate the outputs'.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfci.collector import OutputSketch
from perfci.errors import Unusable
from perfci.metrics import NOTHING, Collector, Reading
from perfci.model.case import Metric
from perfci.model.finding import finding

if TYPE_CHECKING:
    import torch

PLACE = 6
_RANKS = "differing_ranks"
METRICS = {
    Metric("accuracy_loss", "ratio", "exact", 1.0, "fail", floor=1.0, undecided="inconclusive"): (
        "distance (relative L2) of the output to a float64 eager reference, in units of the "
        "dtype's eps"
    ),
    Metric(_RANKS, "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"): (
        "how many of [several ranks](distributed.md#the-same-output) return something else from a "
        "step than most ranks"
    ),
}
TOLERANCE = 8.0
"""Distance that two ranks' outputs may have (relative L2), in eps of their dtype."""
_PROJECTIONS = 8
"""Random projections of an output."""
_CHUNK = 1 << 20
"""Elements of a tensor that are projected at once, to limit memory."""
_LONGEST_PATH = 100
_NOTHING = "nothing"
"""Kind of the output of a step that returns nothing."""


class AccuracyMismatch(ValueError):
    """The outputs differ in kind: structure, shape, integers, or positions of inf and NaN."""


class AccuracyUnsupported(ValueError):
    """The outputs can't be compared at all."""


def accuracy_loss(candidate: Any, reference: Any) -> float:
    """Return the relative L2 distance of the floating outputs in units of the dtype's eps.

    All floating outputs are compared together, as one vector in float64. eps is that of the
    candidate's coarsest floating dtype, and float32's for Python's numbers. If the reference is all
    zeros, the distance is absolute. All other outputs must be equal. Raises AccuracyMismatch if the
    outputs differ in kind, and AccuracyUnsupported for values of unknown types.
    """
    import torch

    ours, theirs = dict(leaves(candidate)), dict(leaves(reference))
    if ours.keys() != theirs.keys():
        odd = sorted(ours.keys() ^ theirs.keys())
        raise AccuracyMismatch(f"the outputs differ in structure, first at `output{odd[0]}`")
    if not any(isinstance(leaf, (torch.Tensor, float, int)) for leaf in ours.values()):
        raise AccuracyUnsupported("there is no tensor or number in the output to compare")
    distance_squared = reference_squared = eps = 0.0
    for path, leaf in ours.items():
        where, other = f"output{path}", theirs[path]
        if not (_is_floating(leaf) and _is_floating(other)):
            _require_equal(where, leaf, other)
            continue
        number, wide = _finite_parts(where, torch.as_tensor(leaf), torch.as_tensor(other))
        eps = max(eps, torch.finfo(torch.as_tensor(leaf).dtype).eps)
        distance_squared += float((number - wide).square().sum())
        reference_squared += float(wide.square().sum())
    scale = math.sqrt(reference_squared) or 1.0
    return math.sqrt(distance_squared) / scale / (eps or 1.0)


def _is_floating(leaf: Any) -> bool:
    import torch

    if isinstance(leaf, torch.Tensor):
        return bool(leaf.is_floating_point() or leaf.is_complex())
    return isinstance(leaf, float)


def _require_equal(where: str, candidate: Any, reference: Any) -> None:
    import torch

    if isinstance(candidate, torch.Tensor) and isinstance(reference, torch.Tensor):
        equal = _is_floating(candidate) == _is_floating(reference) and torch.equal(
            candidate.detach().cpu(), reference.detach().cpu()
        )
    else:
        equal = type(candidate) is type(reference) and candidate == reference
    if not equal:
        shown = (
            str(leaf.dtype) if isinstance(leaf, torch.Tensor) else repr(leaf)[:80]
            for leaf in (candidate, reference)
        )
        raise AccuracyMismatch(
            f"`{where}` ({' and '.join(shown)} in the reference) differs, where it has to be equal"
        )


def _finite_parts(
    where: str, candidate: torch.Tensor, reference: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the finite numbers of both in float64, if all others are equal."""
    import torch

    if candidate.shape != reference.shape:
        shapes = f"{tuple(candidate.shape)}, and {tuple(reference.shape)}"
        raise AccuracyMismatch(f"`{where}` has shape {shapes} in the reference")
    ours, theirs = plain(where, candidate), plain(where, reference)
    finite = torch.isfinite(ours)
    equal = (ours == theirs) | (ours.isnan() & theirs.isnan())
    if not bool(((finite & torch.isfinite(theirs)) | equal).all()):
        raise AccuracyMismatch(f"`{where}` and its reference aren't finite in the same places")
    return ours[finite], theirs[finite]


def plain(where: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor in float64 on the host. AccuracyUnsupported if it can't be converted."""
    import torch

    if tensor.is_quantized or tensor.is_nested:
        raise AccuracyUnsupported(f"`{where}` is a quantised or nested tensor")
    dense = tensor.detach().to("cpu")
    dense = dense.to_dense() if dense.layout is not torch.strided else dense
    if dense.is_complex():
        dense = torch.view_as_real(dense.resolve_conj())
    return dense.to(torch.float64)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf). Mappings that torch takes for leaves are opened too."""
    import torch
    from torch.utils._pytree import keystr, tree_flatten_with_path

    pairs, _ = tree_flatten_with_path(tree)
    for keys, leaf in pairs:
        here = path + keystr(keys)
        if isinstance(leaf, Mapping):
            yield from leaves(dict(leaf), here)
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            raise AccuracyUnsupported(
                f"`output{here}` is a {type(leaf).__name__}, a dataclass that torch doesn't know: "
                "register it with torch.export.register_dataclass, or return tensors"
            )
        elif leaf is None or isinstance(leaf, (torch.Tensor, bool, int, float, str)):
            yield here, leaf
        else:
            raise AccuracyUnsupported(f"`output{here}` is a {type(leaf).__name__}")


# The outputs of ranks.


def sketched(output: Any) -> OutputSketch:
    """Return the sketch of what a step returned."""
    try:
        return _sketch(dict(leaves(output)))
    except AccuracyUnsupported as error:
        return OutputSketch(unsupported=str(error))


def _sketch(found: Mapping[str, Any]) -> OutputSketch:
    """Return the sketch of an output's leaves, by path.

    Its projections are the products of all floating values with vectors of random signs, equal in
    every rank. For two outputs, the expected mean square of the differences between their products
    is their squared distance: Achlioptas (2003), Journal of Computer and System Sciences
    66:671-687.
    """
    import torch

    if all(leaf is None for leaf in found.values()):
        return OutputSketch(_NOTHING)
    generator = torch.Generator().manual_seed(0)
    projections = torch.zeros(_PROJECTIONS, dtype=torch.float64)
    kind, squared, eps = hashlib.sha256(), 0.0, 0.0
    for path, leaf in found.items():
        if hasattr(leaf, "placements"):
            raise AccuracyUnsupported(f"`output{path}` is a DTensor: each rank has a part")
        if not isinstance(leaf, (torch.Tensor, float)):
            kind.update(f"{path} {leaf!r}".encode())
            continue
        tensor = torch.as_tensor(leaf)
        kind.update(f"{path} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if not _is_floating(tensor):
            kind.update(_bytes_of(tensor))
            continue
        values = plain(f"output{path}", tensor).flatten()
        finite = torch.isfinite(values)
        if not bool(finite.all()):
            kind.update(_bytes_of(torch.where(finite, 0.0, values)))
            values = torch.where(finite, values, 0.0)
        squared += float(values.square().sum())
        eps = max(eps, torch.finfo(tensor.dtype).eps)
        for chunk in values.split(_CHUNK):
            signs = torch.randint(0, 2, (_PROJECTIONS, len(chunk)), generator=generator)
            projections += (2.0 * signs.to(torch.float64) - 1.0) @ chunk
    return OutputSketch(kind.hexdigest(), tuple(projections.tolist()), squared, eps)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    values = tensor.detach().to("cpu").contiguous()
    return ctypes.string_at(values.data_ptr(), values.nbytes)


def apart(sketch: OutputSketch, other: OutputSketch) -> float:
    """Return the distance of two outputs in eps of their dtype, ``inf`` if they differ in kind."""
    if sketch.kind != other.kind:
        return math.inf
    pairs = zip(sketch.projections, other.projections, strict=True)
    squared = sum((ours - theirs) ** 2 for ours, theirs in pairs) / _PROJECTIONS
    return math.sqrt(squared / (other.squared or 1.0)) / (sketch.eps or 1.0)


def reading_of(outputs: Sequence[OutputSketch]) -> Reading:
    """Return how many ranks differ from the largest group of equal ranks.

    A remark describes how the first of these ranks differs. If several groups are the largest, the
    first of them counts.
    """
    if why := next((output.unsupported for output in outputs if output.unsupported), ""):
        return Reading(missing={_RANKS: why})
    if all(output.kind == _NOTHING for output in outputs):
        return Reading(missing={_RANKS: "the steps of the ranks return nothing"})
    groups: list[list[int]] = []
    for rank, output in enumerate(outputs):
        equal = (group for group in groups if apart(output, outputs[group[0]]) <= TOLERANCE)
        if group := next(equal, None):
            group.append(rank)
        else:
            groups.append([rank])
    most = max(groups, key=len)
    differing = [rank for rank in range(len(outputs)) if rank not in most]
    remarks = {}
    if differing:
        first, other = differing[0], most[0]
        distance = apart(outputs[first], outputs[other])
        how = {"apart": distance} if math.isfinite(distance) else {}
        remarks[_RANKS] = finding("rank-differs", rank=first, other=other, **how)
    return Reading({_RANKS: float(len(differing))}, remarks=remarks)


class Accuracy(Collector):
    """Compares the outputs with the reference that the work gives, if any.

    If the work has several ranks, it also compares their outputs of one more step.
    """

    def more_calls(self) -> Reading:
        """Return the loss, and how many ranks differ. Unusable if the outputs differ in kind."""
        loss, ranks = self._loss(), self.scene.work.ranks
        if not ranks or not self.scene.order.accuracy:
            return loss
        return loss.joined(reading_of(ranks.outputs()))

    def _loss(self) -> Reading:
        outputs = self.scene.work.accuracy
        if outputs is None:
            return _missing("only inference and training steps have a reference")
        if not self.scene.order.accuracy:
            return NOTHING
        import torch

        try:
            return _compared(*outputs())
        except AccuracyMismatch as error:
            raise Unusable("accuracy", str(error)) from error
        except AccuracyUnsupported as error:
            warning = f"the output could not be checked: {error}"
            return dataclasses.replace(_missing(str(error)), warnings=(warning,))
        except ValueError as error:  # no reference can be computed: reported as missing
            return _missing(str(error))
        except (MemoryError, torch.OutOfMemoryError):  # float64 takes twice the memory and more
            return _missing("no memory left for a float64 reference")


def _compared(candidate: Any, reference: Any) -> Reading:
    loss = accuracy_loss(candidate, reference)
    if not math.isfinite(loss):
        return _missing("the distance to the reference is too large for a number")
    where = first_nan(candidate)
    remarks = {"latency_p50": finding("output-nan", where=where[:_LONGEST_PATH])} if where else {}
    return Reading({"accuracy_loss": loss}, remarks=remarks)


def first_nan(output: Any) -> str:
    """Return the path of an output's first tensor or number with a NaN, or an empty text."""
    import torch

    for path, leaf in leaves(output):
        where = f"output{path}"
        if _is_floating(leaf) and bool(plain(where, torch.as_tensor(leaf)).isnan().any()):
            return where
    return ""


def _missing(why: str) -> Reading:
    return Reading(missing={"accuracy_loss": why})


COLLECTOR = Accuracy
