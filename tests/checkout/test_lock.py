"""The lock file: held by one or shared by many, and gone with its holder."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perfci.measure.checkout.disk import take, take_if_free


def times_open(path: Path) -> int:
    links = (entry.resolve() for entry in Path("/proc/self/fd").iterdir())
    return sum(link == path for link in links)


def test_sharers_share_and_keep_others_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with take(path, shared=True), take(path, shared=True):
        assert take_if_free(path) is None
    lock = take_if_free(path)
    assert lock is not None
    lock.release()


def test_who_waited_for_a_lock_file_that_was_removed_holds_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = take(path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(take, path)
        while times_open(path) < 2:
            time.sleep(0.001)
        first.release(remove=True)
        with waiting.result(timeout=30):
            assert path.exists()
            assert take_if_free(path) is None
    assert times_open(path) == 0
