"""The history as the rest of perfci sees it: opened by its address, and used for all else."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from perfci.errors import UsageError, extra_advice
from perfci.history import schema
from perfci.history.database import WAIT_S, Database, parse_address, require_current
from perfci.history.queries import (
    Statistics,
    acknowledge_change,
    add_nothing,
    claimed,
    name_project,
    read_changes,
    read_distributions,
    read_environments,
    read_measured,
    read_newest,
    read_outcomes,
    read_runs_without_points,
    read_values,
    statistics_of,
    try_changes,
    write_changes,
    write_outcome,
)
from perfci.history.runs import (
    header_of,
    read_runs,
    record_runs,
    remove_runs,
    require_recordable,
    runs_query,
)
from perfci.model.run import GateOutcome, RecordedRun, RunHeader
from perfci.trend.change import KnownChange
from perfci.trend.series import Distributions, LoadedHistory, SeriesKey

_AT_ONCE = 20
"""Runs in one transaction: waiting for the disk takes longer than writing one."""


@contextmanager
def open_history(
    url_or_path: str, *, create: bool = True, wait_s: float = WAIT_S
) -> Iterator[OpenHistory]:
    """Yield the history in a file or at a ``postgresql://`` address.

    It is made where it is missing (UsageError where not ``create``), and an older one is
    upgraded. A damaged one is DamagedFile, a newer one UsageError. Another's lock is waited for
    ``wait_s``; then, and where the database fails, OutsideError.
    """
    address = parse_address(url_or_path)
    if address.path is None:
        _require_driver()
    database = Database(address, wait_s)
    try:
        require_current(database, create=create)
        yield OpenHistory(database)
    finally:
        database.close()


class OpenHistory:
    """An open history. Made by ``open_history``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        return self._database.address.shown

    def record(self, runs: Sequence[RecordedRun]) -> int:
        """Add those of ``runs`` that aren't there yet, each whole or not at all; return how many.

        UsageError, before anything is written, where one couldn't be read back as it is.
        """
        for run in runs:
            require_recordable(run)
        return sum(
            self._database.writing(partial(record_runs, runs=runs[first : first + _AT_ONCE]))
            for first in range(0, len(runs), _AT_ONCE)
        )

    def record_outcome(self, outcome: GateOutcome) -> bool:
        """Add how a report ended; return whether it was new."""
        return self._database.writing(lambda connection: write_outcome(connection, outcome))

    def runs(self, *, environment: str | None = None) -> tuple[RunHeader, ...]:
        """Return the recorded runs, of one environment or of all, as they were measured."""
        query = runs_query()
        if environment is not None:
            query = query.where(schema.environments.c.key == environment)
        with self._database.reading() as connection:
            return tuple(header_of(row) for row in connection.execute(query))

    def load(self) -> LoadedHistory:
        """Return all runs, and all series."""
        from perfci.history.runs import load_history  # numpy, which recording does not need

        with self._database.reading() as connection:
            return load_history(connection)

    def read(self) -> Iterator[RecordedRun]:
        """Yield every run as it was recorded, in the order of measuring."""
        with self._database.reading() as connection:
            yield from read_runs(connection)

    def records(self) -> Iterator[RecordedRun | GateOutcome | KnownChange]:
        """Yield everything there is: what an export holds."""
        yield from self.read()
        yield from self.outcomes()
        yield from self.known_changes()

    def environments(self) -> tuple[str, ...]:
        """Return the keys of the environments that something was measured in, sorted."""
        with self._database.reading() as connection:
            return read_environments(connection)

    def values(
        self, key: SeriesKey, run_ids: Collection[str], *, earlier: Collection[str] = ()
    ) -> Mapping[str, tuple[float, ...]]:
        """Return one series' workers in those of the runs that have any, by run id.

        ``earlier`` are the case's names of before it was renamed.
        """
        with self._database.reading() as connection:
            return read_values(connection, key, run_ids, earlier)

    def newest(
        self, names: Mapping[SeriesKey, Collection[str]], last: int, branch: str
    ) -> Mapping[SeriesKey, tuple[float, ...]]:
        """Return values in the newest ``last`` runs of ``branch``, oldest first.

        ``names`` maps each series that is wanted to its case's earlier names.
        """
        with self._database.reading() as connection:
            return read_newest(connection, names, last, branch)

    def distributions(self, run_ids: Iterable[str]) -> Distributions:
        """Return the workers' values of all series in some runs."""
        with self._database.reading() as connection:
            return read_distributions(connection, run_ids)

    def measured(self, environment: str, *, failed: bool = True) -> frozenset[tuple[str, str]]:
        """Return each (sha, case) that was measured there, and with ``failed`` each that failed."""
        with self._database.reading() as connection:
            return read_measured(connection, environment, with_failed=failed)

    def runs_without_points(self, runner: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Return the sha, and the kind of failure by case, of ``runner``'s runs without a point."""
        with self._database.reading() as connection:
            return read_runs_without_points(connection, runner)

    @contextmanager
    def claim(self, environment: str, sha: str) -> Iterator[bool]:
        """Yield whether no other runner of ``environment`` has the commit in the works."""
        with claimed(self._database, environment, sha) as mine:
            yield mine

    def outcomes(self) -> tuple[GateOutcome, ...]:
        """Return how the recorded reports ended, the oldest first."""
        with self._database.reading() as connection:
            return read_outcomes(connection)

    def known_changes(self) -> tuple[KnownChange, ...]:
        """Return the changes that earlier analyses remembered."""
        with self._database.reading() as connection:
            return read_changes(connection)

    def remember(self, changes: Sequence[KnownChange]) -> None:
        """Add or renew changes; when one was first seen, its acknowledgement and its note stay."""
        self._database.writing(lambda connection: write_changes(connection, changes))

    def require_writable(self) -> None:
        """Raise what recording would raise now: no right to write, or a read-only disk."""
        self._database.writing(add_nothing)

    def require_project(self, project: str) -> None:
        """Make this ``project``'s history where it is nobody's yet; UsageError for another's."""
        owner = self._database.writing(partial(name_project, project=project))
        if owner != project:
            raise UsageError(
                "other-project",
                f"{self.shown} is the history of another project, {owner}; this one is {project}",
                "Series of one name would be mixed: give this project a file, a database or a "
                "PostgreSQL schema of its own (docs/history.md). Where both are one project: "
                f'project = "{owner}" in [tool.perfci].',
            )

    def try_remember(self, changes: Sequence[KnownChange]) -> None:
        """Raise what ``remember`` would raise now: all is written, and taken back."""
        self._database.writing(lambda connection: try_changes(connection, changes))

    def acknowledge(self, change: str, note: str = "", *, undo: bool = False) -> str:
        """Acknowledge the change with this id, or that alone begins so; return its id.

        Without ``note`` an earlier one stays; ``undo`` takes an acknowledgement and its note back.
        """
        return self._database.writing(
            lambda connection: acknowledge_change(connection, change, note, accepted=not undo)
        )

    def remove(self, run_ids: Collection[str]) -> int:
        """Remove runs with their points; return how many there were."""
        ids = sorted(run_ids)
        return sum(
            self._database.writing(partial(remove_runs, run_ids=ids[first : first + _AT_ONCE]))
            for first in range(0, len(ids), _AT_ONCE)
        )

    def statistics(self) -> Statistics:
        """Return how much there is, after looking the whole database over for damage."""
        with self._database.reading() as connection:
            return statistics_of(connection, self._database.address)


def _require_driver() -> None:
    if importlib.util.find_spec("psycopg") is None:
        raise UsageError(
            "no-postgres-driver",
            "a history in PostgreSQL needs psycopg, which isn't installed",
            extra_advice("postgres"),
        )
