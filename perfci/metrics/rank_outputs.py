"""Number of ranks of ``perfci.distributed`` whose output differs from that of most.

A rank sends a sketch of its output: random projections, whose distances are those of the outputs.
Outputs themselves may be as large as a model.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.collecting import LeafSketch, OutputSketch
from perfci.metrics import NOTHING, Collector, Reading
from perfci.metrics.accuracy import AccuracyUnsupported, leaves, plain
from perfci.model.case import Metric
from perfci.model.finding import finding

if TYPE_CHECKING:
    import torch

PLACE = 6.1
NAME = "differing_ranks"
METRICS = {
    Metric(NAME, "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"): (
        "of [several ranks](distributed.md#the-same-output): how many return something else from "
        "a step than most do"
    ),
}
TOLERANCE = 8.0
"""Distance that two ranks' outputs may have (relative L2), in eps of their dtype."""
_PROJECTIONS = 8
_CHUNK = 1 << 20
_NONE = "NoneType None"
_LONGEST_PATH = 100


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
    """Return products with random signs, which are the same in every rank.

    The mean square of the differences of two tensors' products is expected to be their squared
    distance: Achlioptas (2003), Journal of Computer and System Sciences 66:671-687.
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


@dataclass(frozen=True, slots=True)
class Difference:
    """The place where two outputs differ, and by how many eps (``inf`` if they differ in kind)."""

    where: str
    apart: float


def difference(sketch: OutputSketch, other: OutputSketch) -> Difference | None:
    """Return how two outputs differ by more than ``TOLERANCE``, or None."""
    ours, theirs = ({leaf.path: leaf for leaf in each.leaves} for each in (sketch, other))
    for path in [*ours, *theirs]:
        ends = ours.get(path), theirs.get(path)
        if ends[0] is None or ends[1] is None or ends[0].kind != ends[1].kind:
            return Difference(path, math.inf)
    squared = {path: _distance_squared(leaf, theirs[path]) for path, leaf in ours.items()}
    scale = math.sqrt(sum(leaf.squared for leaf in theirs.values())) or 1.0
    eps = max((leaf.eps for leaf in ours.values()), default=0.0) or math.inf
    apart = math.sqrt(sum(squared.values())) / scale / eps
    if apart <= TOLERANCE:
        return None
    return Difference(max(squared, key=squared.__getitem__), apart)


def _distance_squared(sketch: LeafSketch, other: LeafSketch) -> float:
    pairs = zip(sketch.projections, other.projections, strict=True)
    return sum((ours - theirs) ** 2 for ours, theirs in pairs) / _PROJECTIONS


def reading_of(outputs: Sequence[OutputSketch]) -> Reading:
    """Return how many ranks differ from the largest group of equal ranks, and how the first does.

    Of groups of the same size the first counts.
    """
    if why := next((output.unsupported for output in outputs if output.unsupported), ""):
        return Reading(missing={NAME: why})
    if all(leaf.kind == _NONE for output in outputs for leaf in output.leaves):
        return Reading(missing={NAME: "the steps of the ranks return nothing"})
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
        return Reading({NAME: 0.0})
    apart = {"apart": differs.apart} if math.isfinite(differs.apart) else {}
    where = differs.where[:_LONGEST_PATH]
    remark = finding("rank-differs", rank=first, other=most[0], where=where, **apart)
    return Reading({NAME: float(len(outputs) - len(most))}, remarks={NAME: remark})


class RankOutputs(Collector):
    """Compares what the ranks return from one more step."""

    def more_calls(self) -> Reading:
        """Return how many differ."""
        ranks = self.scene.work.ranks
        if not ranks or not self.scene.order.accuracy:
            return NOTHING
        return reading_of(ranks.outputs())


COLLECTOR = RankOutputs
