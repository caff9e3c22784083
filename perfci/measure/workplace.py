"""A session that is ready to measure, and what it was asked for and surrounded by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from perfci.config.loading import Config
from perfci.errors import OutsideError
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.checkout.worktrees import uncommitted, written_since
from perfci.measure.discovery import SideDiscovery, own_cases, require_cases
from perfci.measure.executor import Executor, ProcessExecutor
from perfci.measure.explaining import Explanations, explain_moved, write_trace
from perfci.measure.journal import Journal
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.progress import CaseState, Progress
from perfci.measure.selection import select
from perfci.model.case import Case, Failure
from perfci.model.report import Comparison
from perfci.model.run import WRONG_CODE, Environment
from perfci.verdict.decision import failed_on_base

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RequestedSide:
    """A side to measure: its name, its resolved rev, and its Python."""

    name: str
    resolved: ResolvedRev
    python: str


@dataclass(frozen=True, slots=True)
class ProgressReporter:
    """Takes the progress of a session: steps as text, rounds as ``Progress``."""

    step: Callable[[str], None]
    progress: Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The context of a session: the repository, its configuration, and its environment.

    ``cache`` is the folder for worktrees and builds, ``inherited`` the caller's environment.
    With a token nothing is started, unless it is ``token_allowed``. ``executor`` starts it.
    """

    repository: Repository
    config: Config
    cache: Path
    inherited: Mapping[str, str]
    shown: ProgressReporter
    token_allowed: bool = False
    executor: Executor = field(default_factory=ProcessExecutor)


@dataclass(frozen=True, slots=True)
class Workplace:
    """A session that is ready to measure.

    ``check_out_base`` gives base's commit as it is, with its own benchmark files, as a side.
    """

    plan: SessionPlan
    config: Config
    journal: Journal
    discoveries: Mapping[str, SideDiscovery]
    environments: Mapping[str, Environment]
    budget_end: float
    gpu: GpuWatches
    notes: tuple[str, ...]
    shown: ProgressReporter
    executor: Executor
    started: float
    check_out_base: Callable[[], AbstractContextManager[SidePlan]]

    def elapsed_s(self) -> float:
        """Return the time since the session began, checking out and building included."""
        return self.executor.now() - self.started

    def cases(self, selection: str) -> tuple[Case, ...]:
        """Return head's cases that ``selection`` selects, skipped ones included."""
        head = self.discoveries["head"].discovery
        python = next(side.side.python for side in self.plan.sides if side.name == "head")
        require_cases(head.cases, head.failures, self.config.benchmarks, python, self.notes)
        return select(head.cases, selection)

    def explain(
        self, states: Sequence[CaseState], rows: Sequence[Comparison], traces: Path | None = None
    ) -> Explanations:
        """Look into the cases that moved, of those in ``states``; Chrome traces into ``traces``."""
        keep = partial(write_trace, traces) if traces else None
        return explain_moved(self.plan, self.executor, states, rows, self.shown.step, keep)

    def failures(self, cases: Sequence[Case]) -> tuple[Failure, ...]:
        """Return discovery's failures, and one for each case that base's library can't import.

        A file of head's own that neither side can import is no failure of base's: base never
        had it, so head broke what is broken there. Where head can import a file that base cannot,
        each of its cases has a failure of its own.
        """
        on_head = {failure.case for failure in self.discoveries["head"].discovery.failures}
        everything = tuple(
            failure
            for side in self.discoveries.values()
            for failure in side.discovery.failures
            if failure.side != "base"
            or (failure.case in on_head and not self._is_heads_own(failure.case))
        )
        return everything + self._one_sided(cases)

    def not_on_base(
        self, failures: Sequence[Failure], cases: Sequence[Case], measured: Collection[str]
    ) -> frozenset[str]:
        """Return the cases that failed on base alone because base does not have them.

        ``measured`` are those that base ran before it failed: it does have them. Base's own
        benchmark files are asked only where a case failed there.
        """
        alone = failed_on_base(failures)
        failed = [each for each in cases if each.id in alone and each.id not in measured]
        if not failed:
            return frozenset()
        own = own_cases(self.plan, self.check_out_base, self.executor, self.budget_end)
        return frozenset(case.id for case in failed if not own.has(case))

    def _is_heads_own(self, file: str) -> bool:
        """Return whether the benchmark file is new in head, or has another content than base's."""
        overlay = next(side.overlay for side in self.plan.sides if side.name == "base")
        return file in overlay.added | overlay.changed

    def _one_sided(self, cases: Sequence[Case]) -> tuple[Failure, ...]:
        """A file that imports on one side only: its cases are new, or broken by head."""
        if "base" not in self.discoveries:
            return ()
        base, head = (self.discoveries[name].discovery for name in ("base", "head"))
        base_ids = {case.id for case in base.cases}
        head_ids = {case.id for case in head.cases}
        broken = {failure.case: failure for failure in (*base.failures, *head.failures)}
        return tuple(
            Failure(
                case=case.id,
                side=side,
                stage="import",
                kind=failure.kind,
                message=failure.message,
                alone=failure.alone,
            )
            for side, present, others in (
                ("base", base_ids, cases),
                ("head", head_ids, base.cases),
            )
            for case in others
            if case.id not in present and (failure := broken.get(case.file)) is not None
        )


def written_trees(plan: SessionPlan) -> Iterator[Failure]:
    """Yield a failure for each tree whose sources are not what they were before."""
    names = {plan.own_base: "base"} | {plan_side.root: plan_side.name for plan_side in plan.sides}
    for root, before in plan.uncommitted.items():
        if root.is_dir():  # a tree that is gone failed its case
            side = names.get(root, "head")
            try:
                written = written_since(before, uncommitted(root))
            except OutsideError as error:
                yield Failure("all cases", side, "finish", WRONG_CODE, error.message)
            else:
                if written:
                    yield _written_tree(side, written)


def _written_tree(side: str, written: Sequence[str]) -> Failure:
    """Return the failure of a session whose workers wrote to the sources of ``side``'s tree."""
    shown = ", ".join(f"`{name}`" for name in written[:_SHOWN])
    more = f" and {len(written) - _SHOWN} more" if len(written) > _SHOWN else ""
    message = (
        f"{shown}{more} of {side}'s tree changed while it was measured: what ran isn't only that "
        "commit's code\n"
        "Let benchmarks, and what they call, write below TMPDIR; what a build leaves in the tree "
        "belongs in .gitignore."
    )
    return Failure(written[0], side, "finish", WRONG_CODE, message)
