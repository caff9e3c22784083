"""Opening a session: its trees, scratch folder, guardian and plan. Cleans up at the end."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import copytree, ignore_patterns

from perfci.baselines.baseline import make_environment
from perfci.config.loading import Config
from perfci.errors import OutsideError
from perfci.instruments import added
from perfci.measure.checkout.differing import (
    blobs_of,
    differing_files,
    known_blobs,
    relevant_changes,
)
from perfci.measure.checkout.disk import explaining, remove_folder, take, take_if_free
from perfci.measure.checkout.environments import python_in
from perfci.measure.checkout.git import Resolved
from perfci.measure.checkout.worktrees import Worktrees, uncommitted
from perfci.measure.discovery import (
    Discovered,
    discover,
    not_matching,
    require_own_code,
    separate_packages,
    without_benchmark,
)
from perfci.measure.journal import Journal, measuring_begins
from perfci.measure.leftovers import SESSION_VARIABLE
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.machine.hardware import host_facts
from perfci.measure.machine.isolation import refuse_secrets
from perfci.measure.machine.quiet import (
    CorePlan,
    available_cores,
    child_environment,
    library_facts,
    own_cores,
    plan_cores,
    quiet_facts,
)
from perfci.measure.plan import SessionPlan, SidePlan, files_in
from perfci.measure.provenance.counterparts import Counterparts
from perfci.measure.provenance.places import benchmark_places
from perfci.measure.workplace import Surroundings, Wanted, Workplace
from perfci.model.run import Environment, Side
from perfci.units import counted


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
    those of ``benchmarks_of``, which is checked out beside them, neither built nor measured. Two
    sides run them from a folder that is neither's: where one side's benchmarks lay in its own tree,
    each of the other's imports would look into two trees.
    Raises PerfciError with what to do; nothing of the user's checkout is touched.
    """
    measuring_begins()
    added()  # a broken instrument is said before anything is measured
    config = around.config
    if not around.token_allowed:
        refuse_secrets(around.inherited, around.repository.root)
    started = around.executor.now()
    budget_end = started + config.settings.budget
    with ExitStack() as stack:
        cores, shared = stack.enter_context(_cores_of_its_own(config))
        worktrees = Worktrees(around.cache, around.repository)
        if swept := worktrees.sweep():
            around.shown.step(f"removed {counted(len(swept), 'folder')} that an earlier run left")
        scratch = Path(stack.enter_context(_scratch(around.cache)))
        journal = Journal(log_folder or scratch / "logs")
        token = secrets.token_hex(8)
        enter = stack.enter_context(around.executor.guarded(token, around.inherited))
        sides = _check_out(stack, worktrees, around, wanted, token, enter)
        benchmark_root = sides[-1].root
        if benchmarks_of:
            benchmark_root = stack.enter_context(worktrees.side(benchmarks_of))
        elif len(sides) > 1:
            benchmark_root = stack.enter_context(worktrees.side(wanted[-1].resolved))
            if sides[-1].built:
                _copy_built(sides[-1].root, benchmark_root, config.benchmarks)
        plan = _plan(around, sides, benchmark_root, cores, scratch, token, enter)
        stack.enter_context(_parent_on(cores.parent))
        found = _find_benchmarks(plan, budget_end, journal, around)
        plan = plan.with_discovered(
            {name: one.discovery for name, one in found.items()}, separate_packages(found)
        )
        yield Workplace(
            plan=plan,
            config=config,
            journal=journal,
            found=found,
            environments=_environments(plan, found),
            budget_end=budget_end,
            gpu=GpuWatches(),
            notes=(*worktrees.notes, *shared, *_notes(plan, found, config)),
            shown=around.shown,
            executor=around.executor,
            started=started,
        )


def _cores_of_its_own(config: Config) -> AbstractContextManager[tuple[CorePlan, tuple[str, ...]]]:
    settings = config.settings
    return own_cores(
        available_cores(),
        partial(plan_cores, cores=settings.cores, threads=settings.threads, pin=config.quiet.pin),
    )


def _check_out(
    stack: ExitStack,
    worktrees: Worktrees,
    around: Surroundings,
    wanted: Sequence[Wanted],
    token: str,
    enter: tuple[str, ...],
) -> tuple[SidePlan, ...]:
    """Check out and build each side; ``stack`` removes the trees."""
    config = around.config
    environment = child_environment(
        around.inherited, config.quiet, 1, config.pass_env, {SESSION_VARIABLE: token}
    )
    own = config.environment == "own" and bool(config.build)
    sides = []
    for one in wanted:
        resolved = one.resolved
        around.shown.step(f"checking out {one.name} ({resolved.rev}) …")
        root = stack.enter_context(
            worktrees.side(
                resolved,
                build=_launched(config.launcher, config.build),
                python=one.python,
                environment=environment,
                timeout=config.build_timeout,
                enter=enter,
                passed=config.pass_env,
                own_environment=own,
            )
        )
        side = Side(resolved.rev, resolved.sha, one.python, dirty=resolved.dirty)
        interpreter = python_in(root) if own else ""
        sides.append(SidePlan(one.name, side, root, resolved.tree, bool(config.build), interpreter))
    return tuple(sides)


def _copy_built(built: Path, into: Path, benchmarks: str) -> None:
    """Copy a built tree's folder of benchmarks: ``build`` may make something there."""
    with explaining(f"copying the benchmarks into {into}"):
        copytree(
            built / benchmarks,
            into / benchmarks,
            symlinks=True,
            ignore=ignore_patterns(".git", "__pycache__"),
            dirs_exist_ok=True,
        )


def _launched(launcher: Sequence[str], build: Sequence[str]) -> tuple[str, ...]:
    """Return the build's commands as they run in the same surroundings as workers."""
    return tuple(f"{shlex.join(launcher)} {command}" if launcher else command for command in build)


def _plan(
    around: Surroundings,
    sides: tuple[SidePlan, ...],
    benchmark_root: Path,
    cores: CorePlan,
    scratch: Path,
    token: str,
    enter: tuple[str, ...],
) -> SessionPlan:
    config = around.config
    roots = dict.fromkeys((*(side.root for side in sides), benchmark_root))
    plan = SessionPlan(
        sides=sides,
        benchmark_root=benchmark_root,
        benchmarks=config.benchmarks,
        pattern=config.pattern,
        python_path=config.python_path,
        saved=config.saved,
        settings=config.settings,
        quiet=config.quiet,
        cores=cores,
        passed=config.pass_env,
        inherited=around.inherited,
        scratch=scratch,
        token=token,
        enter=enter,
        launcher=config.launcher,
        checkout=around.repository.root,
        differing=_differing(sides, benchmark_root, config),
        changes=_changes(sides, config),
        uncommitted={root: uncommitted(root) for root in roots},
    )
    root = around.repository.root
    counterparts = Counterparts(
        {str(side.root): blobs_of(root, side.tree) for side in sides}, partial(known_blobs, root)
    )
    return plan.with_places(root, around.cache, config.installed, counterparts)


def _differing(
    sides: Sequence[SidePlan], benchmark_root: Path, config: Config
) -> frozenset[str] | None:
    """Return what is not the same in both trees, as ``SessionPlan.differing`` has it.

    The files of that name in the tree whose benchmarks run are among them, but for the benchmarks:
    a benchmark that finds them by its own ``__file__`` reads head's on both sides.
    A commit beside itself is measured to know its noise: there the answer is no use. Submodules
    are what a build checks out.
    """
    if len({side.side.sha for side in sides}) < 2:
        return None
    one, other = sides
    if any(side.built and (side.root / ".gitmodules").exists() for side in sides):
        return None
    names = differing_files(one.root, other.root, (one.tree, other.tree))
    if names is None:
        return None
    benchmarks = benchmark_places(
        benchmark_root / config.benchmarks,
        files_in(benchmark_root, config.benchmarks, config.pattern),
        config.pattern,
        [benchmark_root / library for library in config.python_path],
    )
    beside = {str(benchmark_root / name) for name in names}
    return frozenset(
        {str(side.root / name) for side in sides for name in names}
        | {path for path in beside if not path.startswith(benchmarks)}
    )


def _changes(sides: Sequence[SidePlan], config: Config) -> dict[str, tuple[str, ...]]:
    """Return what differs between the commits and should be exercised, by kind."""
    if len({side.tree for side in sides}) < 2:
        return {}
    base, head = sides
    folder = Path(config.benchmarks)
    shared = any(Path(library).is_relative_to(folder) for library in config.python_path)

    def is_benchmark(name: str) -> bool:
        path = Path(name)
        return path.is_relative_to(folder) and (not shared or path.match(config.pattern))

    return relevant_changes(base.root, head.root, (base.tree, head.tree), is_benchmark)


def _find_benchmarks(
    plan: SessionPlan, budget_end: float, journal: Journal, around: Surroundings
) -> dict[str, Discovered]:
    found = {}

    def begun(name: str) -> None:
        around.shown.step(f"looking for benchmarks on {name} …")

    for name, one in discover(plan, around.executor, budget_end, begun):
        found[name] = one
        cases, failures = one.discovery.cases, one.discovery.failures
        journal.note(f"{name}: {len(cases)} cases, {len(failures)} files failed")
        for failure in failures:
            journal.note(f"{name}: {failure.case}: {failure.kind}: {failure.message}")
    return found


def _notes(plan: SessionPlan, found: Mapping[str, Discovered], config: Config) -> tuple[str, ...]:
    return (
        *require_own_code(found, config.installed),
        *without_benchmark(found, config.policy.thresholds),
        *not_matching(plan),
    )


def _environments(plan: SessionPlan, found: Mapping[str, Discovered]) -> dict[str, Environment]:
    shared = {
        **host_facts(),
        **quiet_facts(plan.quiet, plan.cores),
        **library_facts(plan.inherited),
    }
    if plan.settings.flush_l2:
        shared["flush_l2"] = "yes"  # its numbers compare with no others; without it all is as ever
    if plan.launcher:
        shared["launcher"] = " ".join(plan.launcher)
    return {
        name: make_environment({**shared, **one.discovery.facts}) for name, one in found.items()
    }


@contextmanager
def _scratch(cache: Path) -> Iterator[str]:
    """Give the session a folder of its own; what a killed session left is removed first.

    A folder's lock file is held while its session lives, however it dies.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob("session-*.lock"):
            if not left.is_dir() and (abandoned := take_if_free(left)):
                with suppress(OSError):
                    remove_folder(left.with_suffix(""))
                abandoned.release(remove=True)
        name = f"session-{secrets.token_hex(6)}"
        lock = take(cache / f"{name}.lock")
        folder = cache / name
        try:
            folder.mkdir()
        except OSError:
            lock.release(remove=True)
            raise
    except OSError as error:
        raise OutsideError(
            "cache-unwritable",
            f"the cache folder {cache} can't be written: {error.strerror}",
            "Make room, or set PERFCI_CACHE_DIR to a folder on a disk that has some.",
        ) from error
    try:
        yield str(folder)
    finally:
        with suppress(OSError):
            remove_folder(folder)
        lock.release(remove=True)


@contextmanager
def _parent_on(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep this process and its threads on ``cores``; where there are none, leave it as it is."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
