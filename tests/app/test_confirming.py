"""Notes of a check that measured its suspects again: which measurement each is of."""

from __future__ import annotations

from perfci.app.confirming import notes_of_again


def test_a_note_of_measuring_again_says_so_and_one_of_both_is_told_once() -> None:
    own = ("Another session is measuring.", "3 bursts were excluded.")
    again = ("Another session is measuring.", "7 bursts were excluded.")
    assert notes_of_again(own, again) == ("measured again: 7 bursts were excluded.",)
