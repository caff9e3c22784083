"""What a session's log keeps."""

from __future__ import annotations

from pathlib import Path

from perfci.measure.progress import Journal
from tests.verdict.workers import worker


def test_a_forked_worker_is_logged_with_its_ancestor(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.result("case", worker("base", 1, {"latency_p50": 0.01}, ancestor=3), "")
    journal.result("case", worker("head", 1, {"latency_p50": 0.01}), "")
    of_base, of_head = (tmp_path / "session.log").read_text().splitlines()
    assert "round 1 base of ancestor 3: 100 samples" in of_base
    assert "round 1 head: 100 samples" in of_head
