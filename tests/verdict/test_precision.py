"""Precision that head lost: from real workers of both sides to the rows."""

from __future__ import annotations

import pytest

from perfci.model.codec import from_plain
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.model.words import words
from perfci.model.worker import Measurement
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.reduction import reduce
from perfci.verdict.row_status import adjust
from tests.builders.warm import Warm
from tests.verdict.workers import case
from tests.worker.driver import Bench

pytestmark = pytest.mark.torch

SOURCE = """\
import torch
import perfci
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        {forward}

class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.bfloat16().to(torch.float32)

    @staticmethod
    def backward(context, gradient):
        return gradient

{before}
x = torch.randn(4, 16)

@perfci.benchmark
def case():
    return {work}
"""
INFERENCE = "perfci.inference(Net().eval(), x)"
TRAINING = "perfci.training_step(Net(), x, torch.ones(4, 16), loss=nn.functional.mse_loss)"
PLAIN = "(lambda net: lambda: net(x))(Net().eval())"
F32 = "return self.last(torch.relu(self.first(x)))"
INSIDE = (
    "with torch.autocast('cpu', torch.bfloat16): x = torch.relu(self.first(x))\n"
    "        return self.last(x.float())"
)
ALL = (
    "with torch.autocast('cpu', torch.bfloat16):\n"
    "            return self.last(torch.relu(self.first(x)))"
)
HALF = "return self.last(torch.relu(self.first(x)).half().float())"
TO = "return self.last(torch.relu(self.first(x)).to(dtype=torch.bfloat16).to(x.dtype))"
KEYWORD = "return self.last(self.first(x).softmax(-1, dtype=torch.bfloat16).type_as(x))"
SOFTMAX = "return self.last(self.first(x).softmax(-1))"
FUNCTION = "return self.last(Rounded.apply(torch.relu(self.first(x))))"
ONLY = "assert x.dtype == torch.float32 and x.clone().numpy().dtype == 'float32'; "
WIDE = "y = self.first(x); return {'energy': self.last(y), 'forces': 1e2 * y}"
NARROW = "y = self.first(x); return {'energy': self.last(y.bfloat16().float()), 'forces': 1e2 * y}"
ONE_OF_TWO = "y = self.first(x); return {'energy': self.last(y).bfloat16(), 'forces': 1e2 * y}"
NESTED = "y = self.first(x); return [(y, self.last(y))]"
NESTED_HALF = "y = self.first(x); return [(y, self.last(y).half())]"


class Sides:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def output(self, side: str, number: int, source: str) -> WorkerOutput:
        told = self._bench.measure(source, growth=False, seed=3)
        blocks = [{name: one[name] for name in one if name != "say"} for one in told.pop("said")]
        raw = from_plain({**told, "blocks": blocks}, Measurement)
        return reduce(raw, case="case", side=side, round_number=number, cold_cache=False)

    def row(
        self, base: str, head: str, work: str = INFERENCE, before: str = ""
    ) -> tuple[Comparison, str]:
        """Return the row of accuracy, and the status of the exact rows' verdict."""
        known = self.rows(base, head, work, before)
        (row,) = (row for row in known if row.metric == "accuracy_loss")
        return row, decide(known, (), Policy()).status

    def rows(
        self, base: str, head: str, work: str = INFERENCE, before: str = ""
    ) -> list[Comparison]:
        """Return the exact rows, and that of accuracy."""
        sources = (
            SOURCE.format(forward=base, work=work, before=""),
            SOURCE.format(forward=head, work=work, before=before),
        )
        before_, after = (
            [self.output(side, 1, source)]
            for side, source in zip(("base", "head"), sources, strict=True)
        )
        policy = Policy()
        rows = adjust(compare_case(case("case"), before_, after, policy, paired=True), policy)
        return [row for row in rows if row.method == "exact" or row.metric == "accuracy_loss"]


@pytest.fixture
def sides(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Sides:
    return Sides(Bench(tmp_path_factory.mktemp("sides") / "tree", warm))


@pytest.mark.parametrize(
    ("base", "head", "work"),
    [
        (F32, INSIDE, INFERENCE),
        (F32, HALF, INFERENCE),
        (F32, TO, INFERENCE),
        (SOFTMAX, KEYWORD, INFERENCE),
        (F32, FUNCTION, INFERENCE),
        (F32, INSIDE, TRAINING),
        (F32, HALF, TRAINING),
        (WIDE, NARROW, INFERENCE),
        (F32, INSIDE, "perfci.inference((lambda net: lambda x: net(x))(Net().eval()), x)"),
    ],
)
def test_casts_inside_lose_accuracy(sides: Sides, base: str, head: str, work: str) -> None:
    row, verdict = sides.row(base, head, work)
    assert (row.status, row.gate, verdict) == ("regressed", "fail", "fail")
    assert row.base.center < 100 < row.head.center
    back, _ = sides.row(head, base, work)
    assert back.status == "improved"


@pytest.mark.parametrize("work", [INFERENCE, TRAINING, PLAIN])
@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        (F32, ALL, "is bfloat16, was float32"),
        (F32, f"{F32}.half()", "is float16, was float32"),
        (f"{F32}.half()", ALL, "is bfloat16, was float16"),
        (WIDE, ONE_OF_TWO, "bfloat16"),
        (NESTED, NESTED_HALF, "is float16, float32, was float32"),
    ],
)
def test_a_coarser_output_fails_whatever_its_distance(
    sides: Sides, base: str, head: str, told: str, work: str
) -> None:
    if work == TRAINING:
        work = "perfci.training_step(Net(), x, torch.ones(4, 16), loss=lambda y, z: y.mean())"
        if "return {" in base or "return [" in base:
            pytest.skip("a loss is one tensor")
    row, verdict = sides.row(base, head, work)
    assert (row.status, row.gate, verdict) == ("regressed", "fail", "fail")
    assert told in words(row.findings[-1])
    if work == INFERENCE:  # a plain callable has no row unless it lost something
        assert sides.row(head, base, work)[0].status in {"improved", "unchanged"}


def test_a_finer_output_of_coarse_work_does_not_fail(sides: Sides) -> None:
    row, _ = sides.row(ALL, INSIDE)
    assert row.status in {"improved", "unchanged"}


@pytest.mark.parametrize(
    ("head", "status"), [(ONLY + F32, "unchanged"), (ONLY + HALF, "regressed")]
)
def test_bases_reference_serves_a_head_without_one(sides: Sides, head: str, status: str) -> None:
    row, _ = sides.row(F32, head)
    assert (row.status, row.gate) == (status, "fail")
    assert "estimated from base's float64 reference" in words(row.findings[0])


@pytest.mark.parametrize(
    ("head", "before"), [(ONLY + F32, "torch.manual_seed(4)"), (ONLY + "return self.first(x)", "")]
)
def test_a_head_without_any_reference_is_undecided(sides: Sides, head: str, before: str) -> None:
    """With other weights, or when it computes something else."""
    row, verdict = sides.row(F32, head, before=before)
    assert (row.status, row.gate, verdict) == ("inconclusive", "fail", "inconclusive")
    assert "no float64 reference" in words(row.findings[-1])


ROUNDED = f"self.last.bfloat16().float(); {F32}"


@pytest.mark.parametrize(
    ("base", "head", "before", "status"),
    [
        (F32, ROUNDED, "", "regressed"),  # its own reference has the rounded weights, too
        (F32, F32.replace("relu(self.first(x))", "relu(self.first(x) + 1e-3)"), "", "regressed"),
        (F32, F32, "", "unchanged"),
        (ROUNDED, ROUNDED, "", "unchanged"),
        (F32, F32, "torch.manual_seed(4)", "none"),
    ],
)
def test_an_output_that_moved_a_little_is_a_warning(
    sides: Sides, base: str, head: str, before: str, status: str
) -> None:
    rows = {row.metric: row for row in sides.rows(base, head, before=before)}
    assert rows["accuracy_loss"].status == "unchanged"
    moved = rows.get("output_change")
    assert (moved.status if moved else "none") == status
    assert moved is None or moved.gate == "warn"
