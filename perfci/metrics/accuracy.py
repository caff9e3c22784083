"""Distance of the outputs from their float64 reference, and of the ranks' outputs from each other.

A rank of ``perfci.distributed`` sends only a sketch of its output, because the output may be as
large as a model. The sketch has random projections. Their distances estimate the outputs'.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perfci.collector import OutputSketch
from perfci.errors import Unusable
from perfci.finding import finding
from perfci.metrics import NOTHING, Collector, Reading, Ruling
from perfci.model.case import Metric
from perfci.model.worker import OutputPart

if TYPE_CHECKING:
    import torch

    from perfci.model.measuring import WorkerOutput

PLACE = 6
_LOSS, _MOVED, _RANKS = "accuracy_loss", "output_change", "differing_ranks"
Parts = Mapping[str, OutputPart]
METRICS = {
    Metric(_LOSS, "ratio", "exact", 1.0, "fail", floor=1.0, undecided="inconclusive"): (
        "distance (relative L2) of the output to a float64 eager reference, in units of the eps of "
        "base's dtype; a coarser dtype fails"
    ),
    Metric(_MOVED, "ratio", "exact", 9.0, "warn", floor=1.0): (
        "distance of the output to base's float64 reference, in the same units, while it is below "
        "10 %: weights that were rounded, or another computation"
    ),
    Metric(_RANKS, "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"): (
        "number of [ranks](distributed.md#the-same-output) whose step returns something else than "
        "most ranks' steps"
    ),
}
_SMALL = 1e-3
"""Least size of a part's numbers against those of all parts, as its distance counts."""
_NEAR = 0.1
"""Largest relative distance of head's output from base's reference that rounding may explain."""
_MOST_VALUES = 10_000
"""Most values of an output in which tensors are looked for."""
_SKETCHED = 1 << 18
"""Most numbers of a tensor that are sketched for the other side."""
_FIRST_KEY = re.compile(r"(?:\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]|\.\w+)?")
"""The first key of a leaf's path."""
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


def compared(candidate: Any, reference: Any) -> Reading:
    """Return the largest relative L2 distance of an output's part, in units of its eps.

    Parts are what lies at the output's keys or indices, or all of it: a large part would hide what
    a small one loses. A distance is relative to the part's norm, or for a part that is ``_SMALL``
    against the others, to that share of theirs. If all of the reference is zero, it's absolute. eps
    is that of the part's coarsest dtype, and float32's for Python's numbers. What isn't floating
    must be equal. Raises AccuracyMismatch if the outputs differ in kind, and AccuracyUnsupported
    for values of unknown types.
    """
    parts = _parts(dict(leaves(candidate)), dict(leaves(reference)))
    loss = _in_units({path: part.distance for path, part in parts.items()}, parts)
    if not math.isfinite(loss):
        return Reading(missing={_LOSS: "the distance to the reference is too large for a number"})
    where = first_nan(candidate)
    remarks = {"latency_p50": finding("output-nan", where=where[:_LONGEST_PATH])} if where else {}
    return Reading({_LOSS: loss}, remarks=remarks, output=parts)


def dtypes_of(output: Any) -> Parts:
    """Return the dtypes of the floating tensors in an output, as those of a single part."""
    if "torch" not in sys.modules:
        return {}
    import torch
    from torch.utils._pytree import tree_iter

    every = islice(tree_iter(output), _MOST_VALUES)
    tensors = [leaf for leaf in every if isinstance(leaf, torch.Tensor) and _is_floating(leaf)]
    return {"": OutputPart(_dtypes(tensors))} if tensors else {}


def _dtypes(values: Iterable[Any]) -> dict[str, tuple[int, float]]:
    import torch

    counts = Counter(torch.as_tensor(value).dtype for value in values)
    return {
        str(dtype).removeprefix("torch."): (count, torch.finfo(dtype).eps)
        for dtype, count in counts.items()
    }


def _parts(values: Mapping[str, Any], references: Mapping[str, Any]) -> Parts:
    """Return an output's parts by path, of its leaves and those of its reference."""
    import torch

    if values.keys() != references.keys():
        odd = sorted(values.keys() ^ references.keys())
        raise AccuracyMismatch(f"the outputs differ in structure, first at `output{odd[0]}`")
    if not any(isinstance(leaf, (torch.Tensor, float, int)) for leaf in values.values()):
        raise AccuracyUnsupported("the output contains no tensor or number to compare")
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = defaultdict(lambda: ({}, {}))
    for path, pair in ((path, (leaf, references[path])) for path, leaf in values.items()):
        if all(map(_is_floating, pair)):
            for side, leaf in zip(pairs[_FIRST_KEY.match(path)[0]], pair, strict=True):  # type: ignore[index]
                side[path] = leaf
        else:
            _require_equal(f"output{path}", *pair)
    sums = {part: _sums(*sides) for part, sides in pairs.items()}
    count, squares, _ = (sum(each[index] for each in sums.values()) for index in range(3))
    least = _SMALL**2 * squares / (count or 1.0)
    return {
        part: OutputPart(
            _dtypes(pairs[part][0].values()),
            math.sqrt(distance / (max(norm, least * numbers) or 1.0)),
            *(_sketch(side, _SKETCHED).projections for side in pairs[part]),
        )
        for part, (numbers, norm, distance) in sums.items()
    }


def _sums(values: Mapping[str, Any], references: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return how many numbers there are, and the squared norms of the reference and distance."""
    import torch

    count = norm = distance = 0.0
    for path, leaf in values.items():
        tensors = torch.as_tensor(leaf), torch.as_tensor(references[path])
        number, wide = _finite_parts(f"output{path}", *tensors)
        count += len(wide)
        norm += float(wide.square().sum())
        distance += float((number - wide).square().sum())
    return count, norm, distance


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
            f"`{where}` ({' and '.join(shown)} in the reference) differs but must be equal"
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


def _sketch(found: Mapping[str, Any], most: int = sys.maxsize) -> OutputSketch:
    """Return the sketch of an output's leaves, by path: of ``most`` numbers of a leaf, about.

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
        values = values[:: 1 + len(values) // most]
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

    _first: Parts = MappingProxyType({})

    def called(self, output: Any) -> None:
        """Note the dtypes of an output, for work without a reference."""
        self._first = dtypes_of(output)

    def more_calls(self) -> Reading:
        """Return the loss, and how many ranks differ. Unusable if the outputs differ in kind."""
        loss, ranks = self._loss(), self.scene.work.ranks
        if not ranks or not self.scene.order.accuracy:
            return loss
        return loss.joined(reading_of(ranks.outputs()))

    def _loss(self) -> Reading:
        if not self.scene.order.accuracy:
            return NOTHING
        work, output, warning = self.scene.work, self._first, ""
        if not work.accuracy:
            why = "only inference and training steps have a reference"
            return Reading(missing={_LOSS: why}, output=output)
        import torch

        try:
            return compared(*work.accuracy())
        except AccuracyMismatch as error:
            raise Unusable("accuracy", str(error)) from error
        except AccuracyUnsupported as error:
            why, warning = str(error), f"the output could not be checked: {error}"
        except ValueError as error:  # no reference can be computed: base's may serve
            why = str(error)
            with suppress(AccuracyUnsupported):
                leaves_of = dict(leaves(work.prepared_call()))
                output = _parts(leaves_of, leaves_of)
        except (MemoryError, torch.OutOfMemoryError):  # float64 takes twice the memory and more
            why = "no memory left for a float64 reference"
        return Reading(missing={_LOSS: why}, warnings=(warning,) if warning else (), output=output)


def first_nan(output: Any) -> str:
    """Return the path of an output's first tensor or number with a NaN, or an empty text."""
    import torch

    for path, leaf in leaves(output):
        where = f"output{path}"
        if _is_floating(leaf) and bool(plain(where, torch.as_tensor(leaf)).isnan().any()):
            return where
    return ""


COLLECTOR = Accuracy

# In the parent. Pure.

Outputs = Sequence["WorkerOutput"]


def comparable(base: Outputs, head: Outputs) -> tuple[Outputs, Outputs]:
    """Return both sides with losses in units of base's eps.

    If head has no float64 reference, both sides' losses are estimated from base's, as long as
    head's output is near to it. It isn't if head has other weights, or computes something else.
    """
    units, parts = _output_of(base), _output_of(head)
    known = [any(_LOSS in each.values for each in side) for side in (base, head)]
    if not (known[0] and units) or units.keys() != parts.keys():
        return base, head
    near = all(_estimate(parts[path], units[path]) <= _NEAR for path in units)
    why = finding("of-bases-reference", why=head[0].missing.get(_LOSS, ""))

    def judged(each: WorkerOutput) -> WorkerOutput:
        far = {path: _estimate(part, units[path]) for path, part in each.output.items()}
        loss = {path: part.distance for path, part in each.output.items()}
        values, remarks = {**each.values}, {**each.remarks}
        if near and far:
            values[_MOVED] = _in_units(far, units)
        if loss and _LOSS in each.values and known[1]:
            values[_LOSS] = _in_units(loss, units)
        elif near and far and not known[1]:
            values[_LOSS], remarks[_LOSS] = values[_MOVED], why
        return replace(each, values=values, remarks=remarks)

    return [judged(each) for each in base], [judged(each) for each in head]


def _in_units(distances: Mapping[str, float], units: Parts) -> float:
    return max((far / units[path].eps for path, far in distances.items()), default=0.0)


def _estimate(part: OutputPart, base: OutputPart) -> float:
    """Return an estimate of a part's relative distance from base's reference."""
    return math.dist(part.sketch, base.reference) / (math.hypot(*base.reference) or 1.0)


def _output_of(side: Outputs) -> Parts:
    return next((each.output for each in side if each.output), {})


def ruling(base: Outputs, head: Outputs) -> Mapping[str, Ruling]:
    """Return the ruling if a part of head's output has a coarser dtype than base's."""
    before, after = _output_of(base), _output_of(head)
    for path in sorted(before.keys() & after.keys()):
        was, now = before[path], after[path]
        if _is_coarser(now, was):
            where = f"output{path}"[:_LONGEST_PATH]
            head_has, base_has = (", ".join(sorted(part.dtypes)) for part in (now, was))
            lost = finding("coarser-output", where=where, head=head_has, base=base_has)
            return {_LOSS: Ruling("regressed", lost)}
    return {}


def _is_coarser(head: OutputPart, base: OutputPart) -> bool:
    """Say whether a tensor of head's has a coarser dtype, in the order of their eps."""
    now, was = (
        sorted((eps for count, eps in part.dtypes.values() for _ in range(count)), reverse=True)
        for part in (head, base)
    )
    if len(now) != len(was):
        return now[0] > was[0]
    return any(ours > base_eps for ours, base_eps in zip(now, was, strict=True))
