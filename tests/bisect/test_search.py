"""The search of ``perfci.bisect`` on histories whose levels are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.bisect.posterior import SessionAnswer, believe
from perfci.bisect.search import (
    LevelChange,
    Question,
    Search,
    changes,
    most_questions,
    next_question,
)

SE, DF = 0.004, 19.0
FEW_ROUNDS = (0.009, 4.0)


def answered(
    levels: Sequence[float],
    asked: Question,
    error: float = 0.0,
    sure: tuple[float, float] = (SE, DF),
) -> SessionAnswer:
    change = levels[asked.position] - levels[asked.base] + error
    return SessionAnswer(asked.position, change, *sure, 10, asked.base)


def search_of(
    levels: Sequence[float],
    broken: frozenset[int] = frozenset(),
    errors: Mapping[int, float] | None = None,
    seen: Callable[[Question], None] = lambda _: None,
    sure: tuple[float, float] = (SE, DF),
) -> tuple[Search, tuple[LevelChange, ...]]:
    """Search; ``errors`` are of the first answers about some positions."""
    length, left = len(levels) - 1, dict(errors or {})
    answers, skipped = [answered(levels, Question(length, 0.0), sure=sure)], []
    while asked := next_question(state := Search(length, tuple(answers), tuple(skipped))):
        seen(asked)
        if asked.position in broken:
            skipped.append(asked.position)
        else:
            answers.append(answered(levels, asked, left.pop(asked.position, 0.0), sure))
    return state, changes(state)


def stepped(length: int, *steps: tuple[int, float]) -> list[float]:
    return [sum(size for at, size in steps if at <= place) for place in range(length + 1)]


@given(st.integers(1, 300), st.data())
def test_one_change_is_found_with_about_log2_comparisons(length: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, length))
    size = data.draw(st.sampled_from([0.05, 0.4, -0.05, -0.4]))
    state, (found,) = search_of(stepped(length, (culprit, size)))
    assert (found.first, found.last, found.found) == (culprit, culprit, True)
    assert found.size == pytest.approx(size)
    assert len(state.answers) <= math.ceil(math.log2(length)) + 4


@pytest.mark.parametrize("position", [31, 33, 40, 48])
def test_one_wrong_answer_is_repaired(position: int) -> None:
    levels = stepped(64, (33, 0.1))
    wrong = -0.1 if position >= 33 else 0.1
    state, (found,) = search_of(levels, errors={position: wrong})
    assert (found.first, found.last) == (33, 33)
    assert len(state.answers) <= most_questions(64)


def test_what_cannot_be_measured_remains_a_range() -> None:
    _, (found,) = search_of(stepped(64, (33, 0.1)), broken=frozenset({31, 32, 33, 34}))
    assert (found.first, found.last, found.found) == (31, 35, True)


def test_broken_commits_elsewhere_cost_no_certainty() -> None:
    _, (found,) = search_of(stepped(64, (33, 0.1)), broken=frozenset(range(1, 31)))
    assert (found.first, found.last) == (33, 33)


@pytest.mark.parametrize(
    "steps",
    [
        [(10, 0.1), (40, 0.2)],
        [(10, 0.2), (40, -0.1)],
        [(10, -0.2), (11, 0.1)],
        [(10, 0.1), (30, 0.1), (50, 0.1)],
        [(20, 0.5), (45, -0.45)],
    ],
)
def test_several_changes_are_told_apart(steps: list[tuple[int, float]]) -> None:
    _, found = search_of(stepped(64, *steps))
    assert [(one.first, one.last) for one in found] == [(at, at) for at, _ in steps]
    assert [one.size for one in found] == pytest.approx([size for _, size in steps])


@pytest.mark.parametrize("last", [62, 63, 64])
def test_a_change_shortly_before_the_end_is_found_though_few_rounds_show_it(last: int) -> None:
    _, found = search_of(stepped(64, (17, 0.1), (20, 0.1), (last, 0.1)), sure=FEW_ROUNDS)
    assert [(one.first, one.last) for one in found] == [(17, 17), (20, 20), (last, last)]


def test_margins_lie_between_the_levels_that_are_to_be_told_apart() -> None:
    asked: list[Question] = []
    search_of(stepped(64, (10, 0.1), (40, 0.2)), seen=asked.append)
    assert asked[0].margin == pytest.approx(0.15, abs=0.01)
    sought = [one.margin for one in asked if one.base == 0]
    assert any(margin == pytest.approx(0.05, abs=0.01) for margin in sought)
    assert any(margin == pytest.approx(0.2, abs=0.01) for margin in sought)


def test_a_clear_answer_counts_for_more_than_a_faint_one() -> None:
    ends = SessionAnswer(64, 0.1, SE, DF)
    clear = believe(64, [ends, SessionAnswer(32, 0.1, SE, DF)], 0.1)
    faint = believe(64, [ends, SessionAnswer(32, 0.06, 0.03, 4.0)], 0.1)
    assert clear.changed[0] > 0.95
    assert 0.5 < faint.changed[0] < 0.9


def test_exact_answers_are_taken_as_they_are() -> None:
    ends, middle = SessionAnswer(8, 2.0, 0.0, 1.0), SessionAnswer(4, 0.0, 0.0, 1.0)
    beliefs = believe(8, [ends, middle], 2.0)
    assert beliefs.changed[0] < 0.05
    assert beliefs.changed[1] > 0.95


def test_a_search_ends_though_its_answers_contradict_each_other() -> None:
    length = 32
    answers = [SessionAnswer(length, 0.1, SE, DF)]
    while asked := next_question(Search(length, tuple(answers))):
        change = 0.1 * (sum(one.position == asked.position for one in answers) % 2)
        answers.append(SessionAnswer(asked.position, change, SE, DF, 10, asked.base))
    assert len(answers) <= most_questions(length)


def test_ends_that_differ_are_asked_again_before_no_commit_is_named() -> None:
    """The last commit's level is the ends': one session of few rounds is all that shows it."""
    answers = [SessionAnswer(256, 0.049, 0.0123, 9.0)]
    answers += [
        SessionAnswer(one, 0.0, 0.007, 9.0) for one in (128, 192, 224, 240, 248, 252, 254, 255)
    ]
    asked = next_question(Search(256, tuple(answers)))
    assert asked is not None
    assert (asked.position, asked.base) == (256, 0)
