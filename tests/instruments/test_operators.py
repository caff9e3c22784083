"""Which operators differ, of recordings made by hand."""

from __future__ import annotations

from typing import Any

from perfci.instruments import words
from perfci.instruments.operators import differences
from perfci.model.why import Difference

LINE = ["model.py", 12, "forward: y = y.clone()"]


def recorded(*operators: tuple[str, str, int, float, float], lines: Any = (LINE,)) -> Any:
    return {"call_s": 1e-3, "lines": list(lines), "operators": operators, "device": []}


def five(*operators: tuple[str, str, int, float, float], lines: Any = (LINE,)) -> list[Any]:
    return [recorded(*operators, lines=lines)] * 5


def found(base: list[Any], head: list[Any]) -> list[Difference]:
    return list(differences(base, head))


MM = ("aten::mm", "float32[8,8] float32[8,8]", -1, 2.0, 4e-4)


def test_the_same_operators_say_nothing() -> None:
    assert found(five(MM), five(MM)) == []


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


def test_a_line_that_moved_down_is_the_same_line() -> None:
    lower = ["model.py", 40, "forward: y = y.clone()"]
    copy = ("aten::copy_", "float32[8]", 0, 1.0, 1e-5)
    assert found(five(copy), five(copy, lines=(lower,))) == []


def test_a_line_that_was_rewritten_and_does_the_same_says_nothing() -> None:
    other = ["model.py", 12, "forward: z = y.clone()"]
    copy = ("aten::copy_", "float32[8]", 0, 1.0, 1e-5)
    assert found(five(copy), five(copy, lines=(other,))) == []


def test_of_an_edited_line_the_calls_that_were_there_before_are_counted() -> None:
    twice = ["model.py", 12, "forward: y = y.clone().clone()"]
    one = ("aten::copy_", "float32[8]", 0, 1.0, 1e-5)
    two = ("aten::copy_", "float32[8]", 0, 2.0, 5e-5)
    (more,) = found(five(one), five(two, lines=(twice,)))
    assert words(more) == "`aten::copy_` 1 → 2 calls, +40.0 µs"
    assert more.line == 12
    (fewer,) = found(five(two, lines=(twice,)), five(one))
    assert words(fewer) == "`aten::copy_` 2 → 1 calls, -40.0 µs"


def test_an_edited_line_that_calls_as_often_is_no_difference_beside_a_new_one() -> None:
    was = ["model.py", 12, "forward: y = torch.cat([x, z])"]
    lines = (
        ["model.py", 12, "forward: y = torch.cat([x, z], -1)"],
        ["model.py", 30, "backward: grown = torch.cat(parts)"],
    )
    old = ("aten::cat", "float32[8]", 0, 1.0, 1e-5)
    new = (old, ("aten::cat", "float32[8]", 1, 1.0, 4e-5))
    (one,) = found(five(old, lines=(was,)), five(*new, lines=lines))
    assert words(one) == "`aten::cat` 0 → 1 calls, +40.0 µs"
    assert one.line == 30


def test_another_precision_is_said_as_one_change() -> None:
    (one,) = found(five(MM), five(("aten::mm", "float64[8,8] float64[8,8]", -1, 2.0, 9e-4)))
    assert one.code == "operator-tensors"
    assert words(one) == (
        "`aten::mm` on float64[8,8] float64[8,8], before on float32[8,8] float32[8,8], 2 calls, "
        "+500 µs"
    )


def test_a_time_counts_where_all_profiles_agree() -> None:
    slow = ("aten::mm", MM[1], -1, 2.0, 6e-4)
    (one,) = found(five(MM), five(slow))
    assert words(one) == "`aten::mm` takes 400 µs → 600 µs in 2 calls"
    overlapping = [*five(slow)[:4], recorded(("aten::mm", MM[1], -1, 2.0, 3.9e-4))]
    assert found(five(MM), overlapping) == []
    assert found(five(MM)[:4], five(slow)[:4]) == []


def test_a_count_that_is_luck_is_no_difference() -> None:
    rehash = [recorded(MM, ("aten::copy_", "", -1, float(one), 1e-5)) for one in (0, 2, 1, 0, 2)]
    assert found(rehash, list(reversed(rehash))) == []


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


def test_what_an_edited_line_no_longer_calls_belongs_to_it_and_a_read_leads_it() -> None:
    was = ["model.py", 9, "total: return torch.stack(found).sum()"]
    now = ["model.py", 12, "<genexpr>: return sum(float(one) for one in found)"]
    (one,) = found(
        five(("aten::unsqueeze", "float32[]", 0, 12.0, 4e-5), lines=(was,)),
        five(("aten::item", "float32[]", 0, 12.0, 1e-5), lines=(now,)),
    )
    assert words(one) == "`aten::item` 0 → 12 calls, with 1 other operator, -30.0 µs in all"
    assert (one.line, round(one.seconds, 9)) == (12, -3e-5)
    (back,) = found(
        five(("aten::item", "float32[]", 0, 12.0, 1e-5), lines=(now,)),
        five(("aten::unsqueeze", "float32[]", 0, 12.0, 4e-5), lines=(was,)),
    )
    assert words(back).startswith("`aten::unsqueeze` 0 → 12 calls, ")


def test_a_comprehension_that_is_gone_has_nothing_to_do_with_a_line_unlike_it() -> None:
    was = ["model.py", 31, "<listcomp>: return [tensor(x, dtype=torch.long) for x in res.values()]"]
    now = ["model.py", 45, "count: z = torch.zeros(most, device=x.device, dtype=x.dtype)"]
    slower, gone = found(
        five(("aten::item", "float32[]", 0, 12.0, 4e-4), lines=(was,)),
        five(("aten::zeros", "", 0, 1.0, 3e-4), lines=(now,)),
    )
    assert {(slower.line, round(slower.seconds, 9)), (gone.line, round(gone.seconds, 9))} == {
        (45, 3e-4),
        (31, -4e-4),
    }


def test_an_operator_of_another_function_is_no_edit_of_the_line() -> None:
    was = ["model.py", 31, "grouped: _id = _id.item()"]
    now = ["model.py", 45, "counted: z = torch.zeros(most)"]
    read = ("aten::item", "int64[]", 0, 2_000.0, 4e-4)
    (gone,) = found(
        five(read, lines=(was,)), five(("aten::item", "int64[]", 0, 1.0, 1e-6), lines=(now,))
    )
    assert (gone.line, words(gone)) == (31, "`aten::item` 2000 → 0 calls, -400 µs")
