"""How often a few rounds of identical sides look slower: ``python -m benchmarks.corpus few``.

Each case's rounds are cut into pieces of one to four, judged both ways round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.corpus.replay import SUITE
from benchmarks.corpus.sessions import read_kept, recorded_sessions
from benchmarks.statistics.scoring import markdown, percent
from perfci.finding import LOOKS_SLOWER
from perfci.measure.kept_bursts import KeptRound
from perfci.model.case import Case
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust

_BOTH_WAYS = (("base", "head"), ("head", "base"))


def slower_metrics(case: Case, rounds: Sequence[KeptRound], sides: tuple[str, str]) -> set[str]:
    """Return the metrics by which ``rounds`` look slower, the first of ``sides`` being base."""
    base, head = ([kept.workers[side].output for kept in rounds] for side in sides)
    rows = compare_case(case, base, head, Policy(), paired=True)
    verdict = decide(adjust(rows, Policy(), float(SUITE)), (), Policy())
    return {reason.metric for reason in verdict.findings if reason.code == LOOKS_SLOWER}


def pieces(size: int) -> Iterator[tuple[Case, list[KeptRound]]]:
    """Yield each ``size`` rounds that followed each other in a case of identical sides."""
    for recorded in recorded_sessions():
        session = read_kept(recorded.path)
        for number, case in enumerate(session.cases if not recorded.share else ()):
            rounds = [kept for kept in session.rounds if kept.case == number]
            for begin in range(0, len(rounds) - size + 1, size):
                yield case, rounds[begin : begin + size]


def main(_: Sequence[str]) -> int:
    """Print the table."""
    rows = []
    for size in (1, 2, 3, 4):
        slower = [slower_metrics(*piece, way) for piece in pieces(size) for way in _BOTH_WAYS]
        named = Counter(name for names in slower for name in names).most_common()
        by_metric = ", ".join(f"{name} {count}" for name, count in named) or "–"
        share = percent(sum(map(bool, slower)), len(slower))
        rows.append((size, len(slower), share, by_metric))
    print(markdown(("rounds", "pieces", "look slower, %", "metrics"), rows))
    return 0
