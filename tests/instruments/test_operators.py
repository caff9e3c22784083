"""Which operators differ, of recordings made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfci.finding import Difference
from perfci.instruments import words
from perfci.instruments.operators import differences
from tests.builders.warm import Warm

LINE = ["model.py", 12, "forward: y = y.clone()"]


def recorded(*operators: tuple[str, str, int, float, float], lines: Any = (LINE,)) -> Any:
    return {"call_s": 1e-3, "lines": list(lines), "operators": operators, "device": []}


def five(*operators: tuple[str, str, int, float, float], lines: Any = (LINE,)) -> list[Any]:
    return [recorded(*operators, lines=lines)] * 5


def found(base: list[Any], head: list[Any]) -> list[Difference]:
    return list(differences(base, head))


MM = ("aten::mm", "float32[8,8] float32[8,8]", -1, 2.0, 4e-4)


def test_more_calls_are_counted_and_named_by_their_line() -> None:
    (one,) = found(
        five(MM, ("aten::copy_", "float32[8]", 0, 1.0, 1e-5)),
        five(MM, ("aten::copy_", "float32[8]", 0, 13.0, 3.51e-4), ("aten::empty", "", 0, 12, 1e-6)),
    )
    assert (one.file, one.line, one.metric) == ("model.py", 12, "latency")
    assert words(one) == "`aten::copy_` 1 → 13 calls, with 1 other operator, +342 µs in all"
    assert round(one.seconds, 9) == 3.42e-4


def test_a_time_that_may_be_noise_is_not_named_as_it_may_go_the_other_way() -> None:
    (lone,) = found(five(MM), five(MM, ("aten::add", "float32[8]", 0, 1.0, 2e-5)))
    assert (words(lone), lone.seconds) == ("`aten::add` 0 → 1 calls", 0.0)
    (group,) = found(
        five(MM, ("aten::mul", "float32[8]", 0, 1.0, 4e-5)),
        five(MM, ("aten::add", "float32[8]", 0, 1.0, 2e-5)),
    )
    assert words(group).endswith(" calls, with 1 other operator"), words(group)


def test_of_an_edited_line_the_calls_that_were_there_before_are_counted() -> None:
    twice = ["model.py", 12, "forward: y = y.clone().clone()"]
    one = ("aten::copy_", "float32[8]", 0, 1.0, 1e-5)
    two = ("aten::copy_", "float32[8]", 0, 2.0, 5e-5)
    (more,) = found(five(one), five(two, lines=(twice,)))
    assert words(more) == "`aten::copy_` 1 → 2 calls, +40.0 µs"
    assert more.line == 12
    (fewer,) = found(five(two, lines=(twice,)), five(one))
    assert words(fewer) == "`aten::copy_` 2 → 1 calls, -40.0 µs"


ADDMM, SMALL, LARGE = "aten::addmm", "float32[8] float32[8,8]", "float32[9] float32[9,9]"


def test_an_operator_that_was_there_all_along_is_counted_with_its_other_tensors() -> None:
    old = (ADDMM, SMALL, -1, 8.0, 1e-4)
    (more,) = found(five(old), five(old, (ADDMM, LARGE, 0, 4.0, 9e-5)))
    assert words(more) == f"`aten::addmm` 8 → 12 calls, 0 → 4 of them on {LARGE}, +90.0 µs"
    (fewer,) = found(five(old, (ADDMM, LARGE, 0, 4.0, 9e-5)), five(old))
    assert words(fewer) == f"`aten::addmm` 12 → 8 calls, 4 → 0 of them on {LARGE}, -90.0 µs"
    (some,) = found(five((ADDMM, SMALL, -1, 8.0, 1e-4)), five((ADDMM, SMALL, -1, 9.0, 1.5e-4)))
    assert words(some) == "`aten::addmm` 8 → 9 calls, +50.0 µs"


def test_calls_that_went_over_to_other_tensors_are_no_new_ones() -> None:
    (one,) = found(
        five((ADDMM, SMALL, 0, 8.0, 8e-5)),
        five((ADDMM, SMALL, 0, 5.0, 5e-5), (ADDMM, LARGE, 0, 3.0, 9e-5)),
    )
    assert words(one) == f"`aten::addmm` on {LARGE}, before on {SMALL}, 3 calls, +60.0 µs"


def test_a_time_counts_where_all_profiles_agree() -> None:
    slow = ("aten::mm", MM[1], -1, 2.0, 6e-4)
    (one,) = found(five(MM), five(slow))
    assert words(one) == "`aten::mm` takes 400 µs → 600 µs in 2 calls"
    overlapping = [*five(slow)[:4], recorded(("aten::mm", MM[1], -1, 2.0, 3.9e-4))]
    assert found(five(MM), overlapping) == []
    assert found(five(MM)[:4], five(slow)[:4]) == []


def test_a_value_that_is_read_stands_for_what_computes_it() -> None:
    (one,) = found(
        five(MM),
        five(
            MM,
            ("aten::sum", "float32[8]", 0, 1.0, 7e-5),
            ("aten::_local_scalar_dense", "float32[]", 0, 1.0, 1e-6),
        ),
    )
    assert words(one).startswith("`aten::_local_scalar_dense` 0 → 1 calls, ")
    assert round(one.seconds, 9) == 7.1e-5


_LOADER = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return self.load(number)

    def load(self, number):
        x = made(number)
        if not x.isfinite().all():
            raise ValueError
        return x

def made(number):
    return torch.full((8,), float(number))

loader = DataLoader(Items(), batch_size=2)

def call():
    for batch in loader:
        batch.sum()
"""
_RECORD = """
import json, sys
root, changed = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, root)
import model
from perfci.instruments import RecordingScene
from perfci.instruments.operators import record
from perfci.model.worker import WorkOrder
order = WorkOrder(root, (), changed={"model.py": tuple(changed)})
print(json.dumps(record(RecordingScene(order, once=model.call, call_s=1e-3))))
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("changed", "made_at"), [([], 18), ([12], 12), ([18], 18), ([8], 9)], ids=str
)
def test_what_a_loader_runs_is_on_the_line_of_the_data_set(
    warm: Warm, tmp_path: Path, changed: list[int], made_at: int
) -> None:
    (tmp_path / "model.py").write_text(_LOADER, encoding="utf-8")
    printed = warm.run(_RECORD, str(tmp_path), json.dumps(changed))
    recording = json.loads(printed.splitlines()[-1])
    at: dict[str, set[int]] = {}
    for name, tensors, number, *_ in recording["operators"]:
        line = recording["lines"][number][1] if number >= 0 else 0
        at.setdefault(f"{name} {tensors}", set()).add(line)
    checked = {9 if changed == [8] else 13}
    assert at["aten::all bool[8]"] == at["aten::item bool[]"] == checked
    assert at["aten::full "] == {made_at}
    assert at["aten::sum float32[2,8]"] == {24}
    assert not any("DataLoader" in name for name in at)
