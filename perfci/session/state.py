"""What a session knows: of each case so far, of how far it is, and of all once it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfci.model.case import Case, Failure
from perfci.model.ran import Ran
from perfci.model.report import Comparison
from perfci.model.worker import WorkerOutput
from perfci.session.discovery import Discovered
from perfci.session.journal import slug
from perfci.verdict.comparison.cases import compare_case
from perfci.verdict.identity import same_code_rows
from perfci.verdict.policy import Policy


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is. ``left_s`` is an estimate of the time to go, or None at first.

    ``provisional`` are gating comparisons that looked worse after the first rounds of all cases.
    """

    case: str
    round: int
    done: int
    planned: int
    elapsed_s: float
    left_s: float | None
    provisional: tuple[Comparison, ...] = ()


@dataclass(slots=True)
class CaseState:
    """What is known of one case so far. Grows only; owned by the session.

    ``opened`` are files that differ between the sides, and that anything opened meanwhile.
    ``took_s`` has what each round took.
    """

    case: Case
    slug: str
    outputs: dict[str, list[WorkerOutput]]
    failures: list[Failure] = field(default_factory=list)
    rounds: int = 0
    longest_round_s: float = 0.0
    first_round_s: float = 0.0
    undecided: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = ()
    wall_s: float = 0.0
    took_s: list[float] = field(default_factory=list)
    same_code: bool = False
    opened: frozenset[str] = frozenset()
    _compared: tuple[int, tuple[Comparison, ...]] = (0, ())

    @property
    def compiled(self) -> bool:
        """Whether its axes say that it compiles, or its first worker of a side did."""
        return self.case.compiled or any(
            outputs and outputs[0].values.get("captured_calls") for outputs in self.outputs.values()
        )

    def compared(self, policy: Policy) -> tuple[Comparison, ...]:
        """Return the comparisons of both sides, made once a round; a side alone has none.

        Of a case that is the ``same_code`` on both they say so.
        """
        if len(self.outputs) == 2 and self._compared[0] != self.rounds:
            base, head = (tuple(self.outputs[name]) for name in ("base", "head"))
            rows = compare_case(self.case, base, head, policy, paired=True)
            self._compared = (self.rounds, rows)
        if not self.same_code:
            return self._compared[1]
        return same_code_rows(self._compared[1])


def by_own_timeout(failure: Failure, case: Case) -> Failure:
    """Return ``failure``, which says whose limit ended it where that is the benchmark's own."""
    if failure.kind != "timeout" or case.timeout is None:
        return failure
    return replace(failure, message=f"{failure.message}: the benchmark's own `timeout`")


@dataclass(frozen=True, slots=True)
class SessionResult:
    """All that was measured.

    ``ended`` is done, budget or fail-fast; or interrupted, tree-deleted or outside (a disk that
    filled, say), and then it is a part of what was to be measured. ``scale`` is how many times the
    comparisons there would be, had it not ended by what it saw. ``ran`` is what the workers ran,
    ``same_code`` the cases of which that is the same on both sides. ``unexercised`` are the changed
    files by kind where no case used any of them. ``failures`` are those of no single case.
    """

    states: tuple[CaseState, ...]
    found: Mapping[str, Discovered]
    wall_s: float
    measured_s: float
    rounds: int
    ended: str
    notes: tuple[str, ...]
    scale: float = 1.0
    ran: Ran | None = None
    same_code: tuple[str, ...] = ()
    unexercised: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    @property
    def cut_short(self) -> bool:
        """Whether something other than the session's own rules ended it."""
        return self.ended in {"interrupted", "tree-deleted", "outside"}


def case_states(cases: tuple[Case, ...], sides: Sequence[str]) -> list[CaseState]:
    """Return a state for each case, nothing measured; ``sides`` are the names of the sides."""
    slugs = _slugs(cases)
    return [CaseState(case, slugs[case.id], {name: [] for name in sides}) for case in cases]


def _slugs(cases: tuple[Case, ...]) -> dict[str, str]:
    """Return a file name for each case; a number follows one that is taken."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for case in cases:
        name, number = slug(case.id), 2
        while name in taken:
            name, number = f"{slug(case.id)}-{number}", number + 1
        taken.add(name)
        names[case.id] = name
    return names
