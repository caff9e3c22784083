"""Opening a session: its trees, scratch folder, guardian and plan. Cleans up at the end."""

from __future__ import annotations

import filecmp
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfci.baselines.baseline import make_environment
from perfci.config.loading import Config
from perfci.errors import OutsideError, UsageError
from perfci.instruments import added
from perfci.measure.checkout.differing import (
    blobs_of,
    differing_files,
    known_blobs,
    relevant_changes,
)
from perfci.measure.checkout.disk import remove_folder, take, take_if_free
from perfci.measure.checkout.environments import python_in
from perfci.measure.checkout.git import ResolvedRev, readable, remotes_of
from perfci.measure.checkout.overlay import BenchmarkFiles, Overlay, lay_over
from perfci.measure.checkout.worktrees import Worktrees, uncommitted
from perfci.measure.discovery import (
    SideDiscovery,
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
from perfci.measure.machine.looks import seen_from_below
from perfci.measure.machine.quiet import (
    CorePlan,
    available_cores,
    child_environment,
    library_facts,
    own_cores,
    plan_cores,
    quiet_facts,
)
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.provenance.counterparts import Counterparts
from perfci.measure.workplace import RequestedSide, SessionContext, Workplace
from perfci.model.run import Environment, Side
from perfci.units import counted


@contextmanager
def open_workplace(
    context: SessionContext,
    wanted: Sequence[RequestedSide],
    log_folder: Path | None = None,
    *,
    benchmarks_of: ResolvedRev | None = None,
) -> Iterator[Workplace]:
    """Check out and build every side, find the benchmarks, and clean up whatever happens.

    ``wanted`` is (base, head) or (head,): the last one's benchmark files are run on all sides, or
    those of ``benchmarks_of``. Each side's tree has them in place of its own, so that both make
    the same calls on files, and what a benchmark finds by ``__file__`` is its own side's.
    Raises PerfciError with what to do; nothing of the user's checkout is touched.
    """
    measuring_begins()
    added()  # a broken instrument is said before anything is measured
    config = context.config
    if not context.token_allowed:
        refuse_secrets(context.inherited, context.repository.root)
    started = context.executor.now()
    budget_end = started + config.settings.budget
    with ExitStack() as stack:
        cores, shared = stack.enter_context(_cores_of_its_own(config))
        worktrees = Worktrees(context.cache, context.repository)
        if swept := worktrees.sweep():
            context.shown.step(f"removed {counted(len(swept), 'folder')} that an earlier run left")
        scratch = Path(stack.enter_context(_scratch(context.cache)))
        journal = Journal(log_folder or scratch / "logs")
        token = secrets.token_hex(8)
        enter = stack.enter_context(context.executor.guarded(token, context.inherited))
        overlays = _laid_over(context, wanted, benchmarks_of)
        check_out = partial(_checked_out, worktrees, context, token, enter)
        sides = tuple(
            stack.enter_context(check_out(*pair)) for pair in zip(wanted, overlays, strict=True)
        )
        _require_equal_benchmarks(sides)
        bases_own = None
        if len(sides) > 1 and sides[0].overlay.tree != sides[0].tree:
            bases_own = stack.enter_context(worktrees.side(wanted[0].resolved))
        plan = _plan(context, sides, bases_own, cores, scratch, token, enter)
        stack.enter_context(_parent_on(cores.parent))
        discoveries = _find_benchmarks(plan, budget_end, journal, context)
        plan = plan.with_discovered(
            {name: side.discovery for name, side in discoveries.items()},
            separate_packages(discoveries),
        )
        yield Workplace(
            plan=plan,
            config=config,
            journal=journal,
            discoveries=discoveries,
            environments=_environments(plan, discoveries),
            budget_end=budget_end,
            gpu=GpuWatches(),
            notes=(*worktrees.notes, *shared, *_notes(plan, discoveries, config)),
            shown=context.shown,
            executor=context.executor,
            started=started,
            check_out_base=partial(_check_out_base, plan, partial(check_out, wanted[0])),
        )


def _cores_of_its_own(config: Config) -> AbstractContextManager[tuple[CorePlan, tuple[str, ...]]]:
    settings = config.settings
    return own_cores(
        available_cores(),
        partial(plan_cores, cores=settings.cores, threads=settings.threads, pin=config.quiet.pin),
    )


def _laid_over(
    context: SessionContext, wanted: Sequence[RequestedSide], benchmarks_of: ResolvedRev | None
) -> list[Overlay]:
    """Return each side's tree with the benchmark files that all sides have.

    A saved model is each side's own, wherever it lies.
    """
    config, root = context.config, context.repository.root
    saved = [Path(path) for model in config.saved for path in (model.model_path, model.inputs_path)]
    benchmarks = BenchmarkFiles(
        config.benchmarks,
        config.pattern,
        config.python_path,
        frozenset(str(path.relative_to(root)) for path in saved if path.is_relative_to(root)),
    )
    source = benchmarks_of or wanted[-1].resolved
    return [lay_over(root, side.resolved.tree, source.tree, benchmarks) for side in wanted]


@contextmanager
def _checked_out(
    worktrees: Worktrees,
    context: SessionContext,
    token: str,
    enter: tuple[str, ...],
    wanted: RequestedSide,
    overlay: Overlay,
) -> Iterator[SidePlan]:
    """Check a side's ``overlay`` out and build it; the tree is removed at the end."""
    config, resolved = context.config, wanted.resolved
    environment = child_environment(
        context.inherited, config.quiet, 1, config.pass_env, {SESSION_VARIABLE: token}
    )
    own = config.environment == "own" and bool(config.build)
    context.shown.step(f"checking out {wanted.name} ({resolved.rev}) …")
    with worktrees.side(
        replace(resolved, tree=overlay.tree),
        build=_launched(config.launcher, config.build),
        python=wanted.python,
        environment=environment,
        timeout=config.build_timeout,
        enter=enter,
        passed=config.pass_env,
        own_environment=own,
    ) as root:
        yield SidePlan(
            wanted.name,
            Side(resolved.rev, resolved.sha, wanted.python, dirty=resolved.dirty),
            root,
            resolved.tree,
            bool(config.build),
            python_in(root) if own else "",
            overlay,
        )


def _require_equal_benchmarks(sides: Sequence[SidePlan]) -> None:
    """Raise UsageError for a benchmark file of which git wrote another content on each side."""
    for name in sorted(frozenset().union(*(side.overlay.converted for side in sides))):
        files = [side.root / name for side in sides]
        if all(map(Path.is_file, files)) and not filecmp.cmp(files[0], files[-1], shallow=False):
            raise UsageError(
                "converted-benchmark",
                f"git writes another {readable(name)} in base: the sides' .gitattributes differ",
                "Write its attributes into a `.gitattributes` in the benchmarks' folder, which "
                "both sides take from head.",
            )


def _launched(launcher: Sequence[str], build: Sequence[str]) -> tuple[str, ...]:
    """Return the build's commands as they run in the same surroundings as workers."""
    return tuple(f"{shlex.join(launcher)} {command}" if launcher else command for command in build)


def _plan(
    context: SessionContext,
    sides: tuple[SidePlan, ...],
    bases_own: Path | None,
    cores: CorePlan,
    scratch: Path,
    token: str,
    enter: tuple[str, ...],
) -> SessionPlan:
    config = context.config
    roots = dict.fromkeys((*(side.root for side in sides), *([bases_own] if bases_own else [])))
    plan = SessionPlan(
        sides=sides,
        benchmarks=config.benchmarks,
        pattern=config.pattern,
        python_path=config.python_path,
        saved=config.saved,
        settings=config.settings,
        quiet=config.quiet,
        cores=cores,
        passed=config.pass_env,
        inherited=context.inherited,
        scratch=scratch,
        token=token,
        enter=enter,
        launcher=config.launcher,
        checkout=context.repository.root,
        differing=_differing(sides),
        changes=_changes(sides),
        uncommitted={root: uncommitted(root) for root in roots},
        remotes=remotes_of(context.repository.root),
        bases_own=bases_own,
        looks=seen_from_below(context.cache, context.inherited),
    )
    repository = context.repository
    counterparts = Counterparts(
        {str(side.root): blobs_of(repository, side.overlay.tree) for side in sides},
        partial(known_blobs, repository.root),
    )
    return plan.with_places(repository.root, context.cache, config.installed, counterparts)


def _differing(sides: Sequence[SidePlan]) -> frozenset[str] | None:
    """Return what is not the same in both trees, as ``SessionPlan.differing`` has it.

    A commit beside itself is measured to know its noise: there the answer is no use.
    """
    if len({side.side.sha for side in sides}) < 2:
        return None
    base, head = sides
    names = differing_files(base.root, head.root, (base.overlay.tree, head.overlay.tree))
    if names is None:
        return None
    return frozenset(str(side.root / name) for side in sides for name in names)


def _changes(sides: Sequence[SidePlan]) -> dict[str, tuple[str, ...]]:
    """Return what differs between the commits and should be exercised, by kind."""
    if len({side.tree for side in sides}) < 2:
        return {}
    base, head = sides
    return relevant_changes(base.root, head.root, (base.overlay.tree, head.overlay.tree))


def _check_out_base(
    plan: SessionPlan, check_out: Callable[[Overlay], AbstractContextManager[SidePlan]]
) -> AbstractContextManager[SidePlan]:
    """Give base's commit as it is, with its own benchmark files: built again where base was."""
    base = plan.sides[0]
    if plan.bases_own is None:
        return nullcontext(base)
    overlay = Overlay(base.tree)
    if base.built:
        return check_out(overlay)
    return nullcontext(replace(base, root=plan.bases_own, overlay=overlay))


def _find_benchmarks(
    plan: SessionPlan, budget_end: float, journal: Journal, context: SessionContext
) -> dict[str, SideDiscovery]:
    result = {}

    def begun(name: str) -> None:
        context.shown.step(f"looking for benchmarks on {name} …")

    for name, discovered in discover(plan, context.executor, budget_end, begun):
        result[name] = discovered
        cases, failures = discovered.discovery.cases, discovered.discovery.failures
        journal.note(f"{name}: {len(cases)} cases, {len(failures)} files failed")
        for failure in failures:
            journal.note(f"{name}: {failure.case}: {failure.kind}: {failure.message}")
    return result


def _notes(
    plan: SessionPlan, discoveries: Mapping[str, SideDiscovery], config: Config
) -> tuple[str, ...]:
    return (
        *require_own_code(discoveries, config.installed),
        *without_benchmark(discoveries, config.policy.thresholds),
        *not_matching(plan),
    )


def _environments(
    plan: SessionPlan, discoveries: Mapping[str, SideDiscovery]
) -> dict[str, Environment]:
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
        name: make_environment({**shared, **side.discovery.facts})
        for name, side in discoveries.items()
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
