import dataclasses
import math

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from perfci.metrics.accuracy import AccuracyMismatch, AccuracyUnsupported, compared, first_nan  # noqa: E402

EPS = torch.finfo(torch.float32).eps


def accuracy_loss(candidate, reference):
    return compared(candidate, reference).values["accuracy_loss"]


def wide(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_loss_is_the_relative_distance_in_units_of_eps():
    reference = wide(3.0, 4.0)
    candidate = torch.tensor([3.0, 4.5])
    assert accuracy_loss(candidate, reference) == pytest.approx(0.5 / 5.0 / EPS)
    assert accuracy_loss(reference.float(), reference) == 0


def test_each_part_of_an_output_counts_by_itself():
    reference = {"large": wide(3e2, 4e2), "small": wide(3.0, 4.0)}
    candidate = {"large": torch.tensor([3e2, 4e2]), "small": torch.tensor([3.0, 4.5])}
    assert accuracy_loss(candidate, reference) == pytest.approx(0.5 / 5.0 / EPS)
    pair = [tuple(each.values()) for each in (candidate, reference)]
    assert accuracy_loss(*pair) == pytest.approx(0.5 / 5.0 / EPS)
    gradients = [{"gradients": each} for each in (candidate, reference)]
    assert accuracy_loss(*gradients) == pytest.approx(0.5 / math.hypot(500.0, 5.0) / EPS)


def test_a_part_that_is_far_smaller_than_the_others_may_be_rounding():
    reference = {"large": wide(1.0, 1.0), "tiny": wide(1e-9)}
    candidate = {"large": torch.tensor([1.0, 1.0]), "tiny": torch.tensor([3e-9])}
    assert accuracy_loss(candidate, reference) < 100


def test_the_coarsest_dtype_of_a_part_gives_its_unit():
    eps = torch.finfo(torch.bfloat16).eps
    coarse = torch.tensor([1.5], dtype=torch.bfloat16)
    apart = (torch.tensor([1.0]), coarse)
    assert accuracy_loss(apart, (wide(1.0), wide(1.0))) == pytest.approx(0.5 / eps)
    together = [[apart], [(wide(1.0), wide(1.0))]]
    assert accuracy_loss(*together) == pytest.approx(0.5 / math.sqrt(2) / eps)


def test_non_finite_values_may_agree():
    reference = wide(math.nan, math.inf, -math.inf, 2.0)
    assert accuracy_loss(reference.float(), reference) == 0


@pytest.mark.parametrize(
    "values",
    [(1.0, math.inf), (math.nan, math.nan), (1.0, 1.0), (-math.inf, 1.0), (math.inf, math.inf)],
)
def test_non_finite_values_in_other_places_are_a_mismatch(values):
    with pytest.raises(AccuracyMismatch, match="`output`"):
        accuracy_loss(torch.tensor(values), wide(math.inf, 1.0))


def test_integers_have_to_be_equal():
    reference = {"ids": torch.tensor([1, 2]), "x": wide(1.0)}
    same = {"x": torch.tensor([1.0]), "ids": torch.tensor([1, 2])}
    assert accuracy_loss(same, reference) == 0
    with pytest.raises(AccuracyMismatch, match=r"ids.*equal"):
        accuracy_loss({**same, "ids": torch.tensor([1, 3])}, reference)
    with pytest.raises(AccuracyMismatch, match="ids"):
        accuracy_loss({**same, "ids": torch.tensor([1.0, 2.0])}, reference)
    assert accuracy_loss(torch.tensor([1, 2]), torch.tensor([1, 2])) == 0


def test_another_structure_or_shape_is_a_mismatch():
    with pytest.raises(AccuracyMismatch, match="structure"):
        accuracy_loss((torch.ones(1),), {"x": wide(1)})
    with pytest.raises(AccuracyMismatch, match="structure"):
        accuracy_loss((torch.ones(1), torch.ones(1)), (wide(1),))
    with pytest.raises(AccuracyMismatch, match="shape"):
        accuracy_loss(torch.ones(1), wide(1, 1))
    with pytest.raises(AccuracyMismatch, match="None"):
        accuracy_loss((torch.ones(1), None), (wide(1), wide(1)))


def test_an_unregistered_dataclass_is_an_error_and_no_silent_pass():
    @dataclasses.dataclass
    class Output:
        logits: object

    with pytest.raises(AccuracyUnsupported, match="register_dataclass"):
        accuracy_loss(Output(torch.ones(1)), Output(wide(2)))


def test_unknown_and_empty_outputs_are_errors():
    with pytest.raises(AccuracyUnsupported, match="object"):
        accuracy_loss(object(), object())
    for nothing in (None, (), "text"):
        with pytest.raises(AccuracyUnsupported, match="no tensor"):
            accuracy_loss(nothing, nothing)


def test_an_output_with_nan_is_found_wherever_it_is():
    whole, broken = torch.ones(2), torch.tensor([1.0, math.nan])
    assert first_nan({"a": whole, "b": [whole, broken]}) == "output['b'][1]"
    assert first_nan((whole, math.nan)) == "output[1]"
    assert first_nan({"a": whole, "count": 3, "inf": math.inf}) == ""
