"""Opens a session: checks out and builds the sides, finds the benchmarks, cleans up at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perfci.baselines import make_environment
from perfci.clock import time_ns
from perfci.config.loading import Config
from perfci.measure.checkout.build import BuildRecipe, python_in
from perfci.measure.checkout.disk import scratch_folder
from perfci.measure.checkout.git import Repository, ResolvedRev, files_of, readable
from perfci.measure.checkout.side_folders import SideFolders, build_times
from perfci.measure.checkout.trees import (
    BenchmarkFiles,
    Differences,
    Overlay,
    differences,
    lay_over,
)
from perfci.measure.checkout.worktrees import uncommitted
from perfci.measure.discovery import (
    cases_of_base,
    discover,
    require_cases,
    require_own_code,
    separate_packages,
    threshold_notes,
    unmatched_file_notes,
)
from perfci.measure.executor import Executor
from perfci.measure.machine.cores import available_cores, cores_near_first, own_cores, plan_cores
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.machine.isolation import (
    child_environment,
    host_facts,
    library_facts,
    quiet_facts,
    refuse_secrets,
)
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.process_cleanup import SESSION_VARIABLE, measuring_begins
from perfci.measure.progress import Journal, Progress
from perfci.measure.project_names import (
    distributions_built_into,
    distributions_of,
    modules_of,
    packages_of,
)
from perfci.measure.selection import select
from perfci.measure.used_code import unpassed_notes, with_helpers
from perfci.model.case import Case, Failure
from perfci.model.run import Environment, Side
from perfci.model.worker import TEST_SKIPPED
from perfci.units import counted
from perfci.verdict.decision import failed_on_base

_NEXT_BUILD_S = 60.0
"""Longest time between the builds of both sides in one session."""


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

    ``cache`` is the folder for worktrees and builds. ``inherited`` are the caller's environment
    variables. If a token is among them, nothing starts, unless ``token_allowed``. ``executor``
    starts the workers.
    """

    repository: Repository
    config: Config
    cache: Path
    inherited: Mapping[str, str]
    shown: ProgressReporter
    token_allowed: bool = False
    executor: Executor = field(default_factory=Executor)


@dataclass(frozen=True, slots=True)
class Workplace:
    """A session that is ready to measure.

    ``started`` and ``budget_end`` are times of the executor's clock. ``check_out_base`` checks
    base's commit out as it is, with its own benchmark files, as a side.
    """

    plan: SessionPlan
    journal: Journal
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

    def of_head(self) -> Workplace:
        """Return the workplace of head alone, with a log of its own."""
        head = self.plan.head
        uncommitted_of_head = {head.root: self.plan.uncommitted[head.root]}
        plan = replace(
            self.plan, sides=(head,), differences=Differences(), uncommitted=uncommitted_of_head
        )
        return replace(
            self,
            plan=plan,
            journal=Journal(self.journal.folder / "alone"),
            environments={"head": self.environments["head"]},
        )

    def cases(self, selection: str) -> tuple[Case, ...]:
        """Return head's cases that ``selection`` selects, skipped ones included."""
        require_cases(self.plan, self.notes)
        return select(self.plan.head.discovery.cases, selection)

    def failures(self, cases: Sequence[Case]) -> tuple[Failure, ...]:
        """Return discovery's failures, and a failure for each case that only one side can import.

        If neither side can import a file that is new or changed in head, only head fails: the file
        comes from head. If only base can't import a file, each of the file's cases has a failure
        instead of the file.
        """
        head = self.plan.head
        if len(self.plan.sides) < 2:
            return head.discovery.failures
        base = self.plan.sides[0]
        on_head = {failure.case for failure in head.discovery.failures}
        both = on_head - base.overlay.added - base.overlay.changed
        return (
            *(failure for failure in base.discovery.failures if failure.case in both),
            *head.discovery.failures,
            *_not_importable(cases, base),
            *_not_importable(base.discovery.cases, head),
        )

    def not_on_base(
        self, failures: Sequence[Failure], cases: Sequence[Case], measured: Collection[str]
    ) -> frozenset[str]:
        """Return the cases that failed only on base, because base does not have them.

        Base has the cases ``measured``, because it ran them before it failed. It doesn't have a
        case that its suite skipped there. Base's own benchmark files are imported only if any other
        case failed there.
        """
        alone = failed_on_base(failures)
        skipped = {case for case in alone.keys() - measured if alone[case].kind == TEST_SKIPPED}
        failed = [case for case in cases if case.id in alone.keys() - measured - skipped]
        if not failed:
            return frozenset(skipped)
        has = cases_of_base(self.plan, self.check_out_base, self.executor, self.budget_end)
        return frozenset(skipped.union(case.id for case in failed if not has(case)))


@contextmanager
def open_workplace(
    context: SessionContext,
    wanted: Sequence[RequestedSide],
    log_folder: Path | None = None,
    *,
    benchmarks_of: ResolvedRev | None = None,
) -> Iterator[Workplace]:
    """Check out and build every side, find the benchmarks, and clean up whatever happens.

    ``wanted`` is (base, head) or (head,). All sides run the benchmark files of ``benchmarks_of``,
    or else of head. They replace each side's own files in its tree. So both sides make the same
    calls on files, and a benchmark that looks around ``__file__`` finds its own side's files.
    Raises PerfciError, which says what to do. The user's checkout isn't touched.
    """
    measuring_begins()
    if not context.token_allowed:
        refuse_secrets(context.inherited, context.repository.root)
    started = context.executor.now()
    with ExitStack() as stack:
        opening = _Opening(context, stack, wanted)
        journal = Journal(log_folder or opening.scratch / "logs")
        plan = opening.plan(benchmarks_of)
        stack.enter_context(_parent_on(plan.cores.parent))
        budget_end = started + context.config.settings.budget
        context.shown.step("looking for benchmarks …")
        plan = replace(plan, sides=discover(plan, context.executor, budget_end))
        _note_discoveries(plan, journal)
        plan = replace(plan, sides=with_helpers(plan), separate=separate_packages(plan.sides))
        gpu = GpuWatches()
        yield Workplace(
            plan=plan,
            journal=journal,
            environments=_environments(plan, gpu),
            budget_end=budget_end,
            gpu=gpu,
            notes=(
                *opening.notes,
                *require_own_code(plan.sides, plan.config.installed),
                *threshold_notes(plan),
                *unmatched_file_notes(plan),
                *unpassed_notes(plan),
                *_without_threads(plan),
            ),
            shown=context.shown,
            executor=context.executor,
            started=started,
            check_out_base=partial(opening.check_out_base, plan),
        )


class _Opening:
    """Makes the folders and processes that a session needs. They end when ``stack`` is left."""

    def __init__(
        self, context: SessionContext, stack: ExitStack, wanted: Sequence[RequestedSide]
    ) -> None:
        settings, pin = context.config.settings, context.config.quiet.pin
        planned = partial(plan_cores, cores=settings.cores, threads=settings.threads, pin=pin)
        self._context, self._stack, self._wanted = context, stack, wanted
        self._began = time_ns() / 1e9
        near = cores_near_first(context.inherited)
        self._cores, self._shared = stack.enter_context(own_cores(available_cores(), planned, near))
        self._folders = SideFolders(context.cache, context.repository)
        if swept := self._folders.sweep():
            context.shown.step(f"removed {counted(len(swept), 'folder')} that an earlier run left")
        self.scratch = stack.enter_context(scratch_folder(context.cache))
        self._token = secrets.token_hex(8)
        stack.enter_context(context.executor.guarded(self._token))

    @property
    def notes(self) -> tuple[str, ...]:
        """The report's notes on the trees and the cores."""
        return (*self._folders.notes, *self._shared)

    def plan(self, benchmarks_of: ResolvedRev | None) -> SessionPlan:
        """Check all sides out, with the benchmark files of one commit, and return their plan."""
        context, config, repository = self._context, self._context.config, self._context.repository
        files = BenchmarkFiles(config.benchmarks, config.pattern, config.python_path)
        source = (benchmarks_of or self._wanted[-1].resolved).tree
        overlays = [lay_over(repository, s.resolved.tree, source, files) for s in self._wanted]
        stack = self._stack.enter_context(ExitStack())
        sides = self._sides(stack, overlays)
        if _built_unlike(sides, config.python_path):
            stack.close()
            context.shown.step(
                "building both sides again, because kept builds have other packages …"
            )
            sides = self._sides(stack, overlays, not_before=self._began)
        bases_own = None
        if len(sides) > 1 and sides[0].overlay.tree != sides[0].tree:
            bases_own = self._stack.enter_context(self._folders.side(self._wanted[0].resolved))
        roots = dict.fromkeys((*(side.root for side in sides), *([bases_own] if bases_own else [])))
        names = {name for side in sides for name in packages_of(side.root, config.python_path)}
        modules = (
            modules_of(map(readable, files_of(repository.git_dir, tree)), config.python_path)
            for tree in {side.overlay.tree for side in sides}
        )
        declared = {name for side in sides for name in distributions_of(side.root)}
        return SessionPlan(
            sides=sides,
            config=config,
            cores=self._cores,
            inherited=context.inherited,
            scratch=self.scratch,
            token=self._token,
            checkout=repository.root,
            differences=_changes(sides),
            uncommitted={root: uncommitted(root) for root in roots},
            bases_own=bases_own,
            cache=context.cache,
            names=tuple(sorted(names)),
            modules=frozenset().union(*modules),
            project=tuple(sorted(declared)),
            began=self._began,
        )

    def _sides(
        self, stack: ExitStack, overlays: Sequence[Overlay], not_before: float = 0.0
    ) -> tuple[SidePlan, ...]:
        return tuple(
            stack.enter_context(self._check_out(side, overlay, not_before))
            for side, overlay in zip(self._wanted, overlays, strict=True)
        )

    @contextmanager
    def _check_out(
        self, wanted: RequestedSide, overlay: Overlay, not_before: float = 0.0
    ) -> Iterator[SidePlan]:
        """Check a side's ``overlay`` out and build it; the tree is removed at the end.

        A kept build that began before ``not_before`` (s since 1970) is made again.
        """
        context, config, resolved = self._context, self._context.config, wanted.resolved
        variable = {SESSION_VARIABLE: self._token}
        recipe = BuildRecipe(
            build=config.build,
            launcher=config.launcher,
            python=wanted.python,
            environment=child_environment(
                context.inherited, config.quiet, 1, config.pass_env, variable
            ),
            timeout=config.build_timeout,
            own_environment=config.environment == "own" and bool(config.build),
            not_before=not_before,
        )
        rev = resolved.short if resolved.rev == resolved.sha else resolved.rev
        context.shown.step(f"checking out {wanted.name} ({rev}) …")
        with self._folders.side(replace(resolved, tree=overlay.tree), recipe) as root:
            yield SidePlan(
                wanted.name,
                Side(resolved.rev, resolved.sha, wanted.python, dirty=resolved.dirty),
                root,
                resolved.tree,
                bool(config.build),
                python_in(root) if recipe.own_environment else "",
                overlay,
            )

    def check_out_base(self, plan: SessionPlan) -> AbstractContextManager[SidePlan]:
        """Check base's commit out with its own benchmark files, and build it if base was built."""
        base = plan.sides[0]
        if plan.bases_own is None:
            return nullcontext(base)
        overlay = Overlay(base.tree)
        if base.built:
            return self._check_out(self._wanted[0], overlay)
        return nullcontext(replace(base, root=plan.bases_own, overlay=overlay))


def _built_unlike(sides: Sequence[SidePlan], python_path: Sequence[str]) -> bool:
    """Return whether builds of two sessions hold other packages: a requirement may have moved."""
    if len(sides) < 2 or not all(side.built for side in sides):
        return False
    (_, ended), (began, _) = (build_times(side.root) for side in sides)
    if 0.0 <= began - ended < _NEXT_BUILD_S:
        return False
    base, head = (distributions_built_into(side.root, python_path) for side in sides)
    return base != head


def _changes(sides: Sequence[SidePlan]) -> Differences:
    """Return what differs between the sides' trees."""
    base, head = sides[0], sides[-1]
    if base.side.sha == head.side.sha:
        return Differences()
    same_python = base.python == head.python
    return differences(
        head.root,
        (base.overlay.tree, head.overlay.tree),
        may_be_seen=same_python and not any(side.built for side in sides),
        may_be_harmless=same_python and all(side.overlay.tree == side.tree for side in sides),
    )


def _not_importable(cases: Sequence[Case], side: SidePlan) -> Iterator[Failure]:
    """Yield a failure for each of the other side's ``cases`` whose file ``side`` can't import."""
    ids = {case.id for case in side.discovery.cases}
    broken = {failure.case: failure for failure in side.discovery.failures}
    for case in cases:
        if case.id not in ids and (failure := broken.get(case.file)):
            yield Failure(case.id, side.name, "import", failure.kind, failure.message)


def _note_discoveries(plan: SessionPlan, journal: Journal) -> None:
    for side in plan.sides:
        cases, failures = side.discovery.cases, side.discovery.failures
        journal.note(f"{side.name}: {len(cases)} cases, {len(failures)} files failed")
        for failure in failures:
            journal.note(f"{side.name}: {failure.case}: {failure.kind}: {failure.message}")


def _environments(plan: SessionPlan, gpu: GpuWatches) -> dict[str, Environment]:
    shared = {
        **host_facts(),
        **quiet_facts(plan.config.quiet, plan.cores),
        **library_facts(plan.inherited),
    }
    if plan.config.launcher:
        shared["launcher"] = " ".join(plan.config.launcher)
    return {
        side.name: make_environment(
            {**shared, **gpu.facts(side.discovery.cards), **side.discovery.facts}
        )
        for side in plan.sides
    }


def _without_threads(plan: SessionPlan) -> Iterator[str]:
    """Yield the note that more threads show nothing, if torch is used on one core."""
    known = any("torch_threads" in side.discovery.facts for side in plan.sides)
    if len(plan.cores.workers) == 1 and known:
        yield "Workers have one core, so effects of torch's number of threads can't show (`cores`)."


@contextmanager
def _parent_on(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep this process and its threads on ``cores``, if there are any."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
