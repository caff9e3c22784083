"""Stated probabilities hold where builds of equal code differ by luck."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfci.bisect.posterior import SessionAnswer, believe
from perfci.bisect.search import SURE, LevelChange, Question, Search, changes, next_question

LENGTH, STEP, SE, DF = 16, 0.05, 0.004, 9.0


def drawn_search(seed: int, layout: float, session: float) -> tuple[int, tuple[LevelChange, ...]]:
    """Search a history with one step; return its place and the changes that were found.

    Each build is off by ``layout`` for good, each comparison by ``session``.
    """
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, LENGTH + 1))
    levels = STEP * (np.arange(LENGTH + 1) >= culprit) + rng.normal(0.0, layout, LENGTH + 1)

    def answer(question: Question) -> SessionAnswer:
        error = rng.normal(0.0, session) + SE * rng.standard_t(DF)
        change = float(levels[question.position] - levels[question.base] + error)
        return SessionAnswer(question.position, change, SE, DF, 10, question.base)

    answers = [answer(Question(LENGTH, 0.0))]
    while question := next_question(state := Search(LENGTH, tuple(answers))):
        answers.append(answer(question))
    return culprit, tuple(change for change in changes(state) if change.found)


@pytest.mark.parametrize(("layout", "session"), [(0.01, 0.0), (0.0, 0.02)])
def test_of_answers_stated_as_sure_nearly_all_are_right(layout: float, session: float) -> None:
    answered = right = 0
    for seed in range(25):
        culprit, found = drawn_search(seed, layout, session)
        assert all(change.probability >= SURE for change in found)
        answered += len(found)
        right += sum(change.first <= culprit <= change.last for change in found)
    assert answered >= 20
    assert right >= 0.92 * answered


def test_measuring_one_build_again_tells_nothing_about_its_luck() -> None:
    """One commit stands out by as much as the commits of both levels differ among themselves."""
    values = {4: 0.012, 8: -0.01, 12: 0.009, 15: -0.012, 16: 0.03, 17: 0.062, 20: 0.04, 32: 0.061}
    answers = [SessionAnswer(position, change, SE, DF) for position, change in values.items()]
    again = [
        *answers,
        *(SessionAnswer(16, 0.03, SE, DF) for _ in range(3)),
        SessionAnswer(16, 0.042, SE, DF, 0, 15),
    ]
    gap = 4
    once, repeated = believe(32, answers, 0.05), believe(32, again, 0.05)
    assert once.positions[gap : gap + 2] == (15, 16)
    assert repeated.changed[gap] < 0.9
    assert once.changed[gap] + once.changed[gap + 1] > 0.8
    assert repeated.changed[gap] == pytest.approx(once.changed[gap], abs=0.15)


def test_luck_of_commits_and_of_sessions_are_told_apart_by_measuring_again() -> None:
    places = range(1, 9)
    of_commits = [
        SessionAnswer(place, 0.02 * (-1) ** place + (0.1 if place > 4 else 0.0), SE, DF)
        for place in places
        for _ in range(2)
    ]
    of_sessions = [
        SessionAnswer(place, 0.02 * (-1) ** number + (0.1 if place > 4 else 0.0), SE, DF)
        for place in places
        for number in range(2)
    ]
    commits, sessions = believe(8, of_commits, 0.1), believe(8, of_sessions, 0.1)
    assert commits.commit_luck > 3.0 * commits.session_luck
    assert sessions.session_luck > 3.0 * sessions.commit_luck


def test_a_difference_of_the_ends_that_luck_explains_names_no_commit() -> None:
    rng = np.random.default_rng(3)
    values = dict(zip(range(1, 17), rng.normal(0.0, 0.01, 16), strict=True))
    answers = [SessionAnswer(place, float(value), SE, DF) for place, value in values.items()]
    answers[-1] = SessionAnswer(16, 0.02, SE, DF)
    assert max(believe(16, answers, 0.02).changed) < 0.5
    assert not math.isclose(believe(16, answers, 0.02).commit_luck, 0.0)
