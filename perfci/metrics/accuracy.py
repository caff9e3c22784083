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

from perfci.collector import LeafSketch, OutputSketch
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
"""Random projections of each tensor."""
_CHUNK = 1 << 20
"""Elements of a tensor that are projected at once, to limit memory."""
_NONE = "NoneType None"
"""Kind of the leaf of a step that returns nothing."""
_LONGEST_PATH = 100


class AccuracyMismatch(ValueError):
    """The outputs differ in kind: structure, shape, integers, or positions of inf and NaN."""


class AccuracyUnsupported(ValueError):
    """The outputs can't be compared at all."""


def accuracy_loss(candidate: Any, reference: Any) -> float:
    """Return the relative L2 distance of the floating outputs in units of the dtype's eps.

    All floating outputs are compared together, as one vector in float64. eps is that of the
    candidate's coarsest floating dtype. If the reference is all zeros, the distance is absolute.
    All other outputs must be equal. Raises AccuracyMismatch if the outputs differ in kind, and
    AccuracyUnsupported for values of unknown types.
    """
    compared = _compare(candidate, reference)
    scale = math.sqrt(compared.reference_squared) or 1.0
    return math.sqrt(compared.distance_squared) / scale / compared.eps


@dataclasses.dataclass(slots=True)
class _Sums:
    distance_squared: float = 0.0
    reference_squared: float = 0.0
    eps: float = 0.0

    def add(self, candidate: torch.Tensor, reference: torch.Tensor, eps: float) -> None:
        self.eps = max(self.eps, eps)
        self.distance_squared += float((candidate - reference).square().sum())
        self.reference_squared += float(reference.square().sum())


def _compare(candidate: Any, reference: Any) -> _Sums:
    import torch

    ours, theirs = dict(leaves(candidate)), dict(leaves(reference))
    if ours.keys() != theirs.keys():
        odd = sorted(ours.keys() ^ theirs.keys())
        raise AccuracyMismatch(f"the outputs differ in structure, first at `output{odd[0]}`")
    if not any(isinstance(leaf, (torch.Tensor, float, int)) for leaf in ours.values()):
        raise AccuracyUnsupported("there is no tensor or number in the output to compare")
    sums = _Sums()
    for path, leaf in ours.items():
        _compare_leaf(f"output{path}", leaf, theirs[path], sums)
    sums.eps = sums.eps or torch.finfo(torch.float32).eps
    return sums


def _compare_leaf(where: str, candidate: Any, reference: Any, sums: _Sums) -> None:
    import torch

    if not isinstance(candidate, torch.Tensor) or not isinstance(reference, torch.Tensor):
        if isinstance(candidate, float) and isinstance(reference, float):
            # The precision of a Python number inside the model is unknown: assume float32's eps.
            _compare_floats(where, torch.tensor(candidate), torch.tensor(reference), sums)
        elif type(candidate) is not type(reference) or candidate != reference:
            raise AccuracyMismatch(
                f"`{where}` is {candidate!r}, and {reference!r} in the reference"
            )
        return
    if candidate.shape != reference.shape:
        shapes = f"{tuple(candidate.shape)}, and {tuple(reference.shape)}"
        raise AccuracyMismatch(f"`{where}` has shape {shapes} in the reference")
    floating = candidate.is_floating_point() or candidate.is_complex()
    if floating != (reference.is_floating_point() or reference.is_complex()):
        raise AccuracyMismatch(
            f"`{where}` is {candidate.dtype}, and {reference.dtype} in the reference"
        )
    if floating:
        _compare_floats(where, candidate, reference, sums)
    elif not torch.equal(candidate.detach().cpu(), reference.detach().cpu()):
        raise AccuracyMismatch(f"`{where}` ({candidate.dtype}) differs, where it has to be equal")


def _compare_floats(
    where: str, candidate: torch.Tensor, reference: torch.Tensor, sums: _Sums
) -> None:
    import torch

    eps = torch.finfo(candidate.dtype).eps
    ours, theirs = plain(where, candidate), plain(where, reference)
    finite = torch.isfinite(ours)
    if not torch.equal(finite, torch.isfinite(theirs)):
        raise AccuracyMismatch(f"`{where}` and its reference aren't finite in different places")
    odd, odd_reference = ours[~finite], theirs[~finite]
    if not bool(((odd == odd_reference) | (odd.isnan() & odd_reference.isnan())).all()):
        raise AccuracyMismatch(f"`{where}` and its reference differ in NaN or sign of infinity")
    sums.add(ours[finite], theirs[finite], eps)


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
        return OutputSketch(
            tuple(_leaf(path, leaf, seed) for seed, (path, leaf) in enumerate(leaves(output)))
        )
    except AccuracyUnsupported as error:
        return OutputSketch(unsupported=str(error))


def _leaf(path: str, leaf: Any, seed: int) -> LeafSketch:
    import torch

    where = f"output{path}"
    if isinstance(leaf, float):
        leaf = torch.tensor(leaf)
    if not isinstance(leaf, torch.Tensor):
        return LeafSketch(where, f"{type(leaf).__name__} {leaf!r}"[:200])
    if hasattr(leaf, "placements"):
        raise AccuracyUnsupported(f"`{where}` is a DTensor, of which each rank has its part")
    kind = f"{leaf.dtype} {tuple(leaf.shape)}"
    if not (leaf.is_floating_point() or leaf.is_complex()):
        return LeafSketch(where, f"{kind} {_digest(leaf)}")
    values = plain(where, leaf).flatten()
    finite = torch.isfinite(values)
    if not bool(finite.all()):
        kind += f" {_digest(torch.where(finite, 0.0, values))}"
        values = torch.where(finite, values, 0.0)
    squared = float(values.square().sum())
    return LeafSketch(where, kind, _projected(values, seed), squared, torch.finfo(leaf.dtype).eps)


def _projected(values: torch.Tensor, seed: int) -> tuple[float, ...]:
    """Return the products of ``values`` with vectors of random signs, equal in every rank.

    For two tensors, the expected mean square of the differences between their products is their
    squared distance: Achlioptas (2003), Journal of Computer and System Sciences 66:671-687.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    sums = torch.zeros(_PROJECTIONS, dtype=torch.float64)
    for chunk in values.split(_CHUNK):
        signs = torch.randint(0, 2, (_PROJECTIONS, len(chunk)), generator=generator)
        sums += (2.0 * signs.to(torch.float64) - 1.0) @ chunk
    return tuple(sums.tolist())


def _digest(tensor: torch.Tensor) -> str:
    """Return a hash of the values."""
    values = tensor.detach().to("cpu").contiguous()
    return hashlib.sha256(ctypes.string_at(values.data_ptr(), values.nbytes)).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class SketchDifference:
    """The leaf where two outputs differ most, and their distance in eps (``inf``: in kind)."""

    where: str
    apart: float


def difference(sketch: OutputSketch, other: OutputSketch) -> SketchDifference | None:
    """Return how two outputs differ by more than ``TOLERANCE``, or None."""
    ours, theirs = ({leaf.path: leaf for leaf in each.leaves} for each in (sketch, other))
    for path in [*ours, *theirs]:
        ends = ours.get(path), theirs.get(path)
        if ends[0] is None or ends[1] is None or ends[0].kind != ends[1].kind:
            return SketchDifference(path, math.inf)
    squared = {path: _distance_squared(leaf, theirs[path]) for path, leaf in ours.items()}
    scale = math.sqrt(sum(leaf.squared for leaf in theirs.values())) or 1.0
    eps = max((leaf.eps for leaf in ours.values()), default=0.0) or math.inf
    apart = math.sqrt(sum(squared.values())) / scale / eps
    if apart <= TOLERANCE:
        return None
    return SketchDifference(max(squared, key=squared.__getitem__), apart)


def _distance_squared(sketch: LeafSketch, other: LeafSketch) -> float:
    pairs = zip(sketch.projections, other.projections, strict=True)
    return sum((ours - theirs) ** 2 for ours, theirs in pairs) / _PROJECTIONS


def reading_of(outputs: Sequence[OutputSketch]) -> Reading:
    """Return how many ranks differ from the largest group of equal ranks.

    A remark describes how the first of these ranks differs. If several groups are the largest, the
    first of them counts.
    """
    if why := next((output.unsupported for output in outputs if output.unsupported), ""):
        return Reading(missing={_RANKS: why})
    if all(leaf.kind == _NONE for output in outputs for leaf in output.leaves):
        return Reading(missing={_RANKS: "the steps of the ranks return nothing"})
    groups: list[list[int]] = []
    for rank, output in enumerate(outputs):
        equal = (group for group in groups if difference(output, outputs[group[0]]) is None)
        group = next(equal, None)
        if group is None:
            groups.append([rank])
        else:
            group.append(rank)
    most = max(groups, key=len)
    first = next((rank for rank in range(len(outputs)) if rank not in most), most[0])
    differs = difference(outputs[first], outputs[most[0]])
    if differs is None:
        return Reading({_RANKS: 0.0})
    apart = {"apart": differs.apart} if math.isfinite(differs.apart) else {}
    where = differs.where[:_LONGEST_PATH]
    remark = finding("rank-differs", rank=first, other=most[0], where=where, **apart)
    return Reading({_RANKS: float(len(outputs) - len(most))}, remarks={_RANKS: remark})


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
        try:
            return _compared(*outputs())
        except AccuracyMismatch as error:
            raise Unusable("accuracy", str(error)) from error
        except AccuracyUnsupported as error:
            warning = f"the output could not be checked: {error}"
            return dataclasses.replace(_missing(str(error)), warnings=(warning,))
        except ValueError as error:  # no reference can be computed: reported as missing
            return _missing(str(error))
        except (MemoryError, _out_of_memory()):  # float64 takes twice the memory and more
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
        number = leaf if isinstance(leaf, torch.Tensor) else None
        if isinstance(leaf, float):
            number = torch.tensor(leaf)
        if number is not None and bool(torch.isnan(plain(f"output{path}", number)).any()):
            return f"output{path}"
    return ""


def _out_of_memory() -> type[Exception]:
    import torch

    kind: type[Exception] = torch.OutOfMemoryError
    return kind


def _missing(why: str) -> Reading:
    return Reading(missing={"accuracy_loss": why})


COLLECTOR = Accuracy
