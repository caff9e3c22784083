"""A session's plan: the order, caches, environment and places of each of its workers."""

from __future__ import annotations

import math
import secrets
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from perfci.config.loading import Config
from perfci.measure.checkout.build import activated
from perfci.measure.checkout.disk import remove_folder
from perfci.measure.checkout.side_folders import build_times
from perfci.measure.checkout.trees import Differences, Overlay
from perfci.measure.code_guard import CodePlaces, CodeUsed, WorkerWatch
from perfci.measure.machine.cores import CorePlan
from perfci.measure.machine.isolation import child_environment
from perfci.measure.process_cleanup import SESSION_VARIABLE
from perfci.measure.progress import CaseState
from perfci.measure.round_side import WorkerTask
from perfci.measure.workers import Launch
from perfci.model.case import Case
from perfci.model.run import Side
from perfci.model.worker import Discovery, WorkOrder

# precompiled headers lie next to the cache folder: one side's compile would make them for all
_NO_SHARED_HEADERS = {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}


def _places(folder: Path) -> dict[str, str]:
    """Return the variables of a process whose temporary files and compile cache lie in ``folder``.

    Without the second, torch's compiler sets it as it is imported, to another folder on each side.
    """
    return {"TMPDIR": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}


def files_in(root: Path, benchmarks: str, pattern: str) -> tuple[str, ...]:
    """Return the absolute paths below ``root / benchmarks`` that match ``pattern``, sorted."""
    folder = root / benchmarks
    return tuple(str(path) for path in sorted(folder.rglob(pattern)) if path.is_file())


@dataclass(frozen=True, slots=True)
class SidePlan:
    """One side of a session: its name (base or head), its commit, its tree and its Python.

    ``root`` is the folder that was checked out. ``tree`` is git's hash of the commit's tree.
    ``overlay`` is that tree with the benchmark files that both sides have, as it was checked out.
    ``built`` says whether it was built. ``interpreter`` is the Python of the environment that the
    build made for this side alone, or "". ``discovery`` is what the benchmark files hold, and
    ``used`` the code that the workers ran that listed them.
    """

    name: str
    side: Side
    root: Path
    tree: str = ""
    built: bool = False
    interpreter: str = ""
    overlay: Overlay = field(default_factory=lambda: Overlay(""))
    discovery: Discovery = field(default_factory=lambda: Discovery((), (), {}))
    used: tuple[CodeUsed, ...] = ()

    @property
    def python(self) -> str:
        """The Python that runs the side's workers."""
        return self.interpreter or self.side.python


@dataclass(frozen=True)
class SessionPlan:
    """All that a session needs to know before it starts.

    Folders: each side's tree has the same benchmark files, head's or those of ``--benchmarks-of``.
    ``bases_own`` is a tree of base's commit as it is, if its own benchmark files are different.
    ``cache`` holds the trees of all sides and commits. ``scratch`` is emptied at the session's end.
    ``checkout`` is the user's own tree.

    The project: ``names`` are the packages in the sides' trees, ``modules`` the dotted names of
    their modules, ``project`` the distributions that the trees declare. ``separate`` are packages
    that each side has installed in a Python of its own, as intended.

    ``began`` is when the session began, in s since 1970.

    ``uncommitted`` has for each tree what differed from its commit before any worker ran.
    """

    sides: tuple[SidePlan, ...]
    config: Config
    cores: CorePlan
    inherited: Mapping[str, str]
    scratch: Path
    token: str
    checkout: Path
    cache: Path
    names: tuple[str, ...] = ()
    modules: frozenset[str] = frozenset()
    project: tuple[str, ...] = ()
    separate: frozenset[str] = frozenset()
    differences: Differences = field(default_factory=Differences)
    uncommitted: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)
    bases_own: Path | None = None
    began: float = math.inf

    @property
    def head(self) -> SidePlan:
        """Head, or the only side."""
        return self.sides[-1]

    @property
    def own_base(self) -> Path:
        """The tree with base's own benchmark files: base's tree, if it has them."""
        return self.bases_own or self.sides[0].root

    def benchmark_files(self, root: Path) -> tuple[str, ...]:
        """Return the absolute paths of the benchmark files in ``root``'s tree, sorted."""
        return files_in(root, self.config.benchmarks, self.config.pattern)

    def discovery_order(self, side: SidePlan) -> WorkOrder:
        """Return the order that makes a worker list the benchmarks."""
        files = self.benchmark_files(side.root)
        return replace(
            self._order(side),
            root=str(side.root),
            python_path=self.python_path_of(side),
            benchmark_files=files,
            project=self.project,
            checkout=str(self.checkout),
            suite_files=files,
            pytest_args=self.config.pytest_args,
            commit=side.side.sha,
        )

    def _order(self, side: SidePlan) -> WorkOrder:
        """Return what all orders to processes of this side's Python share."""
        return WorkOrder(
            root="",
            python_path=(),
            side=side.name,
            seed=self.config.settings.seed,
            devices=side.discovery.devices,
            metrics=side.discovery.metrics,
        )

    def side_server_order(self, side: SidePlan, cases: Sequence[Case]) -> WorkOrder:
        """Return the order of a fork server for ``cases``, all of one benchmark file."""
        file = next((case.file for case in cases), "")
        return replace(
            self.discovery_order(side),
            benchmark_file=str(side.root / file) if file else "",
            benchmark_files=(),
        )

    def server_order(self, preload: Sequence[str], compiler: Sequence[str] = ()) -> WorkOrder:
        """Return the order of a fork server of all sides' workers."""
        return replace(
            self._order(self.sides[0]),
            root=str(self._server_folder()),  # not a side's tree: nothing there may be imported
            preload=tuple(preload),
            compiler=tuple(compiler),
        )

    def server_launch(self) -> Launch:
        """Return the launch of a fork server: base's Python, but an environment of neither side."""
        return self._launch(self.sides[0], _places(self._server_folder()) | _NO_SHARED_HEADERS)

    def _server_folder(self) -> Path:
        folder = self.scratch / "server"
        folder.mkdir(exist_ok=True)
        return folder

    def owner(self, package: str) -> str:
        """Return the first side whose workers would import ``package`` from a tree, or ""."""
        for side in self.sides:
            benchmarks = side.root / self.config.benchmarks
            inside = (path for path in benchmarks.rglob("*") if path.is_dir())
            folders = [*map(Path, self.python_path_of(side)), benchmarks, *inside]
            if package in self.names or any(
                (folder / package).is_dir() or any(folder.glob(f"{package}.*"))
                for folder in folders
            ):
                return side.name
        return ""

    def watched(self, side: SidePlan, *, openings: bool = True) -> WorkerWatch:
        """Return a new watch, for one worker of this side."""
        folder = self.scratch / "ran"
        folder.mkdir(exist_ok=True)
        record = folder / f"{side.name}-{secrets.token_hex(8)}"
        watched = WorkerWatch(record, self.places[side.name], openings)
        watched.begin()
        return watched

    def _temporary_of(self, side: SidePlan) -> Path:
        return self.scratch / f"tmp{side.name[0]}"

    def launch(self, side: SidePlan, watched: WorkerWatch | None = None) -> Launch:
        """Return the launch of this side's processes, under ``watched`` or a new watch.

        Each side has its own ``TMPDIR``: there it can't find what the other side compiled.
        """
        temporary = self._temporary_of(side)
        temporary.mkdir(exist_ok=True)
        extensions = self.scratch / "caches" / side.name / "extensions"
        # what a benchmark compiles by torch.utils.cpp_extension is its own side's
        extra = {**_places(temporary), "TORCH_EXTENSIONS_DIR": str(extensions)}
        watched = watched or self.watched(side)
        return self._launch(side, extra | watched.environment())

    def _launch(self, side: SidePlan, extra: Mapping[str, str]) -> Launch:
        config, token = self.config, {SESSION_VARIABLE: self.token}
        environment = child_environment(
            self.inherited, config.quiet, self.cores.threads, config.pass_env, {**token, **extra}
        )
        if side.interpreter:
            environment = activated(environment, side.interpreter)
        return Launch(
            python=side.python,
            environment=environment,
            affinity=self.cores.workers,
            memory_limit=config.settings.memory_limit,
            launcher=config.launcher,
        )

    def task(
        self, side: SidePlan, state: CaseState, round_number: int, extra: Collection[str]
    ) -> WorkerTask:
        """Return one worker's task in one round. ``extra`` are the ``EXTRA_CALL_METRICS`` in it.

        The first round fills the compile cache that warm rounds share. Each other cold round gets
        an empty cache of its own.
        """
        case, slug = state.case, state.slug
        cold = round_number <= state.cold_rounds(self.config.settings.compile_rounds)
        name = f"cold-{round_number}" if cold and round_number != 1 else "warm"
        caches = self.scratch / "caches" / side.name / slug / name
        caches.mkdir(parents=True, exist_ok=True)
        order = replace(
            self.side_server_order(side, (case,)),
            case=case.id,
            cold_cache=cold,
            accuracy=not {"accuracy_loss", "differing_ranks"}.isdisjoint(extra),
            growth="memory_growth" in extra,
            warmup_s=self.config.settings.warmup,
            inject={
                name: share if side.name == "head" else 0.0
                for name, share in self.config.settings.inject.items()
            },
        )
        watched = self.watched(side, openings=round_number == 1)
        own = {
            **watched.environment(),
            "TMPDIR": str(self._temporary_of(side)),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            **_NO_SHARED_HEADERS,
            "TRITON_CACHE_DIR": str(caches / "triton"),
        }
        launch = self.launch(side, watched)
        return WorkerTask(
            order=order,
            launch=replace(launch, environment={**launch.environment, **own}),
            environment=own,
            timeout_s=case.timeout or self.config.settings.timeout,
            watched=watched,
        )

    def forget_cold_caches(self, slug: str) -> None:
        """Remove the caches that only one cold round used: Inductor's grow large."""
        for side in self.sides:
            for folder in (self.scratch / "caches" / side.name / slug).glob("cold-*"):
                with suppress(OSError):
                    remove_folder(folder)

    def python_path_of(self, side: SidePlan) -> tuple[str, ...]:
        """Return the folders of this side's tree that go first on ``sys.path``."""
        folders = (side.root / entry for entry in self.config.python_path)
        return tuple(str(folder.resolve()) for folder in folders if folder.is_dir())

    @cached_property
    def places(self) -> Mapping[str, CodePlaces]:
        """The places of each side's code."""
        return {side.name: self._places_of(side) for side in self.sides}

    def _places_of(self, side: SidePlan) -> CodePlaces:
        discovery = side.discovery
        return CodePlaces(
            root=str(side.root),
            checkout=f"{self.checkout}/",
            cache=f"{self.cache.resolve()}/",
            python_path=self.python_path_of(side),
            others=tuple(f"{other.root}/" for other in self.sides if other.root != side.root),
            clones=discovery.sources,
            copies=tuple(
                path
                for copy in discovery.copies
                if copy.distribution not in self.config.installed
                for path in copy.paths
            ),
            spared=(f"{self.scratch.resolve()}/",),
            pythons=(
                *_prefix_of(side.side.python),
                *_prefix_of(side.python),
                *(f"{each}/" for each in discovery.pythons),
            ),
            modules=self.modules,
            installed=tuple(sorted({*self.config.installed, *self.separate})),
            configured_path=tuple(self.config.python_path),
            built=side.built,
            began=self.began,
            builds=tuple(build_times(other.root) for other in self.sides if other.built),
        )


def _prefix_of(python: str) -> tuple[str, ...]:
    """Return the folder that an interpreter is installed in, or its virtual environment's."""
    program = shutil.which(python)
    return (f"{Path(program).absolute().parent.parent.resolve()}/",) if program else ()
