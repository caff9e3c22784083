"""Which code a session's workers ran, and which cases ran the same code on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseState
from perfci.measure.provenance.attribution import Provenance
from perfci.measure.provenance.tally import FileTally
from perfci.measure.provenance.watch import OpenedFiles
from perfci.model.run import Ran
from perfci.verdict.judgement import may_be_same_code
from perfci.verdict.policy import Policy


class CodeRan:
    """Grows round by round; ``close`` ends the following of files.

    A case that ran the same code on both sides, without doubt, needs no more rounds: it is settled,
    but where ``everything`` is measured.
    """

    def __init__(self, plan: SessionPlan, policy: Policy, *, everything: bool) -> None:
        self._plan = plan
        self._policy = policy
        self._everything = everything
        self._tally = FileTally(plan.trees())
        differing = plan.differing if self._may_be_the_same() else None
        self._tally.read(differing or ())
        self._openings = OpenedFiles(differing)

    def opened(self) -> frozenset[str]:
        """Return the files that differ between the sides and were opened since the last call."""
        return self._openings.taken()

    def add(
        self, state: CaseState, ran: Mapping[str, Provenance], imported: frozenset[str]
    ) -> None:
        """Note what a round's workers ran, by side; ``imported`` was opened by what forked them."""
        state.opened |= imported | self.opened()
        for name, one in ran.items():
            self._tally.add(state.case.id, name, one)

    def settles(self, state: CaseState) -> bool:
        """Say whether the case is the same code on both sides, and nothing says otherwise."""
        return (
            not self._everything
            and state.rounds == 1
            and self._openings.complete
            and self._ran_the_same(state)
            and may_be_same_code(state.compared(self._policy))
        )

    def of_sides(self) -> Ran | None:
        """Return what ran on each side; None where it isn't watched."""
        if not self._plan.places:
            return None
        base = self._tally.side("base") if len(self._plan.sides) > 1 else None
        return Ran(base, self._tally.side("head"))

    def same(self, states: Sequence[CaseState]) -> tuple[str, ...]:
        """Return the cases of which nothing that ran differs between the sides."""
        if not self._may_be_the_same():
            return ()
        return tuple(state.case.id for state in states if self._ran_the_same(state))

    def unexercised(self, states: Sequence[CaseState]) -> Mapping[str, tuple[str, ...]]:
        """Return the changes by kind where no case used anything that differs; else nothing."""
        all_same = bool(states) and len(self.same(states)) == len(states)
        return self._plan.changes if all_same else {}

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of it."""
        notes = self._tally.notes()
        if self._may_be_the_same() and self._tally.has_unseen_looks():
            why = f" ({self._plan.looks.why})" if self._plan.looks.why else ""
            note = f"Not all looks at files were seen{why}: their cases are measured in full"
            notes += (f"{note}, same code or not. `perfci doctor` says more.",)
        return notes

    def close(self) -> None:
        """Follow files no longer."""
        self._openings.close()

    def _may_be_the_same(self) -> bool:
        """Say whether both sides are watched, under one Python, nothing injected."""
        if not self._plan.places or any(self._plan.settings.inject.values()):
            return False
        sides = self._plan.sides
        return len(sides) > 1 and len({side.python for side in sides}) == 1

    def _ran_the_same(self, state: CaseState) -> bool:
        if state.same_code:
            return True
        measured = all(state.outputs.values()) and not state.failures
        return measured and not state.opened and self._tally.is_same(state.case.id)
