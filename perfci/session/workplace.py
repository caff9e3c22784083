"""What a session needs around it: trees, scratch folder, guardian, and its plan. Cleans up."""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfci.baselines.environment import make_environment
from perfci.checkout.credentials import git_secrets
from perfci.checkout.lock import take, take_if_free
from perfci.checkout.repository import Repository, Resolved
from perfci.checkout.worktree import Worktrees
from perfci.config.loading import Config
from perfci.errors import OutsideError
from perfci.machine.gpu_watch import GpuWatches
from perfci.machine.host import host_facts
from perfci.machine.isolation import isolated
from perfci.machine.neighbours import own_cores
from perfci.machine.quiet import available_cores, child_environment, plan_cores, quiet_facts
from perfci.machine.tokens import OVERRIDE, overridden, tokens_in
from perfci.model.case import Case, Failure
from perfci.model.run import Environment, Side
from perfci.session.discovering import (
    Found,
    discover,
    not_matching,
    packages_apart,
    require_cases,
    require_own_code,
    without_benchmark,
)
from perfci.session.journal import Journal
from perfci.session.leftovers import SESSION_VARIABLE, Guardian
from perfci.session.plan import SessionPlan, SidePlan
from perfci.session.ran.places import Places, benchmark_places, distributions_of, packages_of
from perfci.session.selecting import select
from perfci.session.session import Progress, Session, SessionResult
from perfci.units import counted


@dataclass(frozen=True, slots=True)
class Wanted:
    """One side as it was asked for: its name, its resolved rev, and its Python."""

    name: str
    resolved: Resolved
    python: str


@dataclass(frozen=True, slots=True)
class Shown:
    """How a session reports on its way: steps as text, rounds as ``Progress``."""

    step: Callable[[str], None]
    progress: Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every session is handed: the repository, its configuration, and the world around.

    ``cache`` is the folder for worktrees and builds, ``inherited`` the caller's environment.
    Beside a token nothing is started, unless it is ``token_allowed``.
    """

    repository: Repository
    config: Config
    cache: Path
    inherited: Mapping[str, str]
    shown: Shown
    token_allowed: bool = False


@dataclass(frozen=True, slots=True)
class Workplace:
    """A session that is ready to measure."""

    plan: SessionPlan
    config: Config
    journal: Journal
    found: Mapping[str, Found]
    environments: Mapping[str, Environment]
    budget_end: float
    gpu: GpuWatches
    notes: tuple[str, ...]
    shown: Shown
    started: float

    def elapsed_s(self) -> float:
        """Return the time since the session began, checking out and building included."""
        return time.monotonic() - self.started

    def cases(self, selection: str) -> tuple[Case, ...]:
        """Return head's cases that ``selection`` selects, skipped ones included."""
        head = self.found["head"].discovery
        require_cases(head.cases, head.failures, self.config.benchmarks)
        return select(head.cases, selection)

    def measure(
        self, cases: Sequence[Case], *, fail_fast: bool = False, scale: float = 1.0
    ) -> SessionResult:
        """Measure those of ``cases`` that every side has and that aren't skipped.

        ``scale`` is how many times their comparisons the report will have.
        """
        known = [{case.id for case in found.discovery.cases} for found in self.found.values()]
        chosen = tuple(
            case for case in cases if not case.skip and all(case.id in ids for ids in known)
        )
        session = Session(
            self.plan,
            self.config.policy,
            self.journal,
            budget_end=self.budget_end,
            gpu=self.gpu,
            fail_fast=fail_fast,
            scale=scale,
            progress=self.shown.progress,
        )
        return session.measure(chosen, self.found)

    def failures(self, cases: Sequence[Case]) -> tuple[Failure, ...]:
        """Return discovery's failures, and one for each case that base's library can't import.

        A file of head's own that base's library can't import is no failure of base's: base
        never had it, so what is broken there is broken by head. Nor is a file that head imports:
        each of its cases tells it.
        """
        one_sided = self._one_sided(cases)
        new = {failure.case for failure in one_sided if failure.side == "base"}
        told = {case.file for case in cases if case.id in new}
        everything = tuple(
            failure
            for found in self.found.values()
            for failure in found.discovery.failures
            if failure.side != "base"
            or not (failure.case in told or self._is_heads_own(failure.case))
        )
        return everything + one_sided

    def _is_heads_own(self, file: str) -> bool:
        """Whether the benchmark file is new in head, or has another content than base's."""
        base = next(side.root for side in self.plan.sides if side.name == "base")
        mine, other = self.plan.benchmark_root / file, base / file
        if not mine.is_file():  # a failure of something else than a file: a saved model's
            return False
        return not other.is_file() or not filecmp.cmp(mine, other, shallow=False)

    def _one_sided(self, cases: Sequence[Case]) -> tuple[Failure, ...]:
        """A file that imports on one side only: its cases are new, or broken by head."""
        if "base" not in self.found:
            return ()
        base, head = (self.found[name].discovery for name in ("base", "head"))
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
            )
            for side, present, others in (
                ("base", base_ids, cases),
                ("head", head_ids, base.cases),
            )
            for case in others
            if case.id not in present and (failure := broken.get(case.file)) is not None
        )


@contextmanager
def open_workplace(
    around: Surroundings,
    wanted: Sequence[Wanted],
    log_folder: Path | None = None,
    *,
    benchmarks_of: Resolved | None = None,
) -> Iterator[Workplace]:
    """Check out and build every side, find the benchmarks, and clean up whatever happens.

    ``wanted`` is (base, head) or (head,): the last one's benchmark files are run on all sides, or
    those of ``benchmarks_of``, which is checked out beside them, neither built nor measured.
    Raises PerfciError with what to do; nothing of the user's checkout is touched.
    """
    config, inherited, shown = around.config, around.inherited, around.shown
    if not around.token_allowed:
        refuse_secrets(inherited, around.repository.root)
    started = time.monotonic()
    token = secrets.token_hex(8)
    with ExitStack() as stack:
        cores, shared = stack.enter_context(
            own_cores(
                available_cores(),
                partial(
                    plan_cores,
                    cores=config.settings.cores,
                    threads=config.settings.threads,
                    pin=config.quiet.pin,
                ),
            )
        )
        worktrees = Worktrees(around.cache, around.repository)
        if swept := worktrees.sweep():
            shown.step(f"removed {counted(len(swept), 'folder')} that a killed run left")
        scratch = Path(stack.enter_context(_scratch(around.cache)))
        journal = Journal(log_folder or scratch / "logs")
        stack.enter_context(Guardian(token))
        enter = stack.enter_context(isolated(inherited))
        build_environment = child_environment(
            inherited, config.quiet, 1, config.pass_env, {SESSION_VARIABLE: token}
        )
        sides = []
        for one in wanted:
            shown.step(f"checking out {one.name} ({one.resolved.rev}) …")
            root = stack.enter_context(
                worktrees.side(
                    one.resolved,
                    build=config.build,
                    python=one.python,
                    environment=build_environment,
                    timeout=config.build_timeout,
                    enter=enter,
                    passed=config.pass_env,
                )
            )
            side = Side(one.resolved.rev, one.resolved.sha, one.python, dirty=one.resolved.dirty)
            built = bool(config.build)
            sides.append(SidePlan(one.name, side, root, one.resolved.tree, built))
        benchmark_root = sides[-1].root
        if benchmarks_of:
            benchmark_root = stack.enter_context(worktrees.side(benchmarks_of))
        plan = SessionPlan(
            sides=tuple(sides),
            benchmark_root=benchmark_root,
            benchmarks=config.benchmarks,
            pattern=config.pattern,
            python_path=config.python_path,
            saved=config.saved,
            settings=config.settings,
            quiet=config.quiet,
            cores=cores,
            passed=config.pass_env,
            inherited=inherited,
            scratch=scratch,
            token=token,
            enter=enter,
            checkout=around.repository.root,
        )
        plan = watching(plan, around)
        stack.enter_context(_parent_aside(plan.cores.parent))
        budget_end = started + config.settings.budget
        found = {}
        for side_plan in sides:
            shown.step(f"looking for benchmarks on {side_plan.name} …")
            found[side_plan.name] = discover(plan, side_plan, budget_end)
            _log_discovery(journal, side_plan.name, found[side_plan.name])
        plan = knowing(plan, found)
        notes = (
            *worktrees.notes,
            *shared,
            *require_own_code(found, config.installed),
            *without_benchmark(found, config.policy.thresholds),
            *not_matching(plan),
        )
        environments = {
            name: make_environment(
                {**host_facts(), **quiet_facts(plan.quiet, plan.cores), **one.discovery.facts}
            )
            for name, one in found.items()
        }
        yield Workplace(
            plan=plan,
            config=config,
            journal=journal,
            found=found,
            environments=environments,
            budget_end=budget_end,
            gpu=GpuWatches(),
            notes=notes,
            shown=shown,
            started=started,
        )


def watching(plan: SessionPlan, around: Surroundings) -> SessionPlan:
    """Return ``plan`` with every side's places: its workers are watched from now on."""
    folder = plan.benchmark_root / plan.benchmarks
    files = plan.benchmark_files(plan.benchmark_root)
    libraries = [plan.benchmark_root / one for one in plan.python_path]
    benchmarks = benchmark_places(folder.resolve(), files, plan.pattern, libraries)
    roots = dict.fromkeys((*(one.root for one in plan.sides), plan.benchmark_root))
    names = {name for side in plan.sides for name in packages_of(side.root, plan.python_path)}
    places = {
        side.name: Places(
            root=str(side.root),
            checkout=f"{around.repository.root}/",
            cache=f"{around.cache.resolve()}/",
            own=(f"{side.root}/", *benchmarks),
            spared=(f"{plan.scratch.resolve()}/", *_saved_files(plan, side)),
            python_path=plan.python_path_of(side),
            names=tuple(sorted(names)),
            temporary=(f"{plan.temporary_of(side.name).resolve()}/",),
            pythons=_prefix_of(side.side.python),
            installed=around.config.installed,
            others=tuple(f"{root}/" for root in roots if root != side.root),
            benchmarks=(f"{side.root}/", f"{plan.benchmark_root}/", f"{plan.benchmarks}/")
            if side.root != plan.benchmark_root and benchmarks == (f"{folder.resolve()}/",)
            else (),
        )
        for side in plan.sides
    }
    declared = {name for side in plan.sides for name in distributions_of(side.root)}
    return replace(plan, places=places, project=tuple(sorted(declared)))


def _saved_files(plan: SessionPlan, side: SidePlan) -> tuple[str, ...]:
    files = (path for one in plan.saved_of(side) for path in (one.model_path, one.inputs_path))
    return tuple(filter(None, files))


def _prefix_of(python: str) -> tuple[str, ...]:
    """Return the folder that an interpreter is installed in, or its virtual environment's."""
    found = shutil.which(python)
    return (f"{Path(found).absolute().parent.parent.resolve()}/",) if found else ()


def knowing(plan: SessionPlan, found: Mapping[str, Found]) -> SessionPlan:
    """Return ``plan`` with the devices, and where the project is installed, as discovery found it.

    What each side has in a Python of its own is meant so.
    """
    apart = packages_apart(found)
    places = {
        name: replace(
            one,
            installed=tuple(sorted({*one.installed, *apart})),
            copies=tuple(
                path
                for copy in found[name].discovery.copies
                if copy.distribution not in one.installed
                for path in copy.paths
            ),
            pythons=(*one.pythons, *(f"{each}/" for each in found[name].discovery.pythons)),
            clones=found[name].discovery.sources,
        )
        for name, one in plan.places.items()
    }
    devices = {name: one.discovery.devices for name, one in found.items()}
    return replace(plan, places=places, devices=devices)


def refuse_secrets(inherited: Mapping[str, str], root: Path) -> None:
    """Refuse to start benchmarks beside a token that they could read: set, or kept by git."""
    from perfci.errors import UsageError

    if overridden(inherited):
        return
    trusting = f"Where you trust the code on both sides: --allow-token, or {OVERRIDE}=1."
    if present := tokens_in(inherited):
        raise UsageError(
            "token-in-environment",
            f"{present[0]} is set, and benchmarks are other people's code",
            f"Measure in a job without it (docs/security.md). {trusting}",
        )
    if kept := git_secrets(root).settings:
        raise UsageError(
            "token-in-git",
            f"git keeps a credential ({kept[0]}), and benchmarks are other people's code",
            f"Take it away; of actions/checkout: `persist-credentials: false`. {trusting}",
        )


@contextmanager
def _scratch(cache: Path) -> Iterator[str]:
    """Give the session a folder of its own; what a killed session left is removed first.

    A folder's lock file is held while its session lives, however it dies.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob("session-*.lock"):
            if abandoned := take_if_free(left):
                shutil.rmtree(left.with_suffix(""), ignore_errors=True)
                abandoned.release(remove=True)
        name = f"session-{secrets.token_hex(6)}"
        lock = take(cache / f"{name}.lock")
        folder = cache / name
        folder.mkdir()
    except OSError as error:
        raise OutsideError(
            "cache-unwritable",
            f"the cache folder {cache} can't be written: {error.strerror}",
            "Make room, or set PERFCI_CACHE_DIR to a folder on a disk that has some.",
        ) from error
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release(remove=True)


@contextmanager
def _parent_aside(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep the parent (its threads included) off the workers' cores, where there are others."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _log_discovery(journal: Journal, name: str, found: Found) -> None:
    discovery = found.discovery
    journal.note(f"{name}: {len(discovery.cases)} cases, {len(discovery.failures)} files failed")
    for failure in discovery.failures:
        journal.note(f"{name}: {failure.case}: {failure.kind}: {failure.message}")
