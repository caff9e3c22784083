"""Stored baselines: their records, what a run adds to them, their environments and their files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from perfci.errors import DamagedFile, OutsideError
from perfci.files import folder_held, read_regular, write_file
from perfci.finding import Finding, finding
from perfci.metrics import METRICS
from perfci.model.case import Case, Metric
from perfci.model.codec import encode, from_plain
from perfci.model.measuring import WorkerOutput
from perfci.model.run import CaseRun, Environment, Run
from perfci.model.worker import GraphEvent, OutputPart
from perfci.version import BASELINE_SCHEMA

if TYPE_CHECKING:
    import pandas as pd

MOST_SESSIONS = 10
"""Sessions that a baseline keeps. Beyond that the oldest is dropped."""
_NOTE = "note_"
"""Prefix of facts that are kept to be read. They don't decide whether environments are equal."""
T = TypeVar("T")
_FACTS = "environment.json"
"""File of an environment's facts, in the folder of its baselines."""
ENVIRONMENT_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,249}")
"""Matches an environment's key, which is the name of its folder."""
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""Matches the hash of a commit. A name would be resolved to whatever it means today."""
_CASE_FILE = re.compile(r".+-[0-9a-f]{8}\.json")
"""Matches the file of a case's baseline (see ``_file_name``)."""
_NUMBERS = re.compile(r"\[\n[-+\d.eE,\s]*\]")
"""Matches a list of numbers that is spread over several lines of JSON."""
_ADVICE = "Restore it from git, or remove it and run `perfci baseline update`."
_ALIKE = "alike.json"
"""File of the cases in which the last check found no difference, in a repository's cache."""
_KEY_COLUMNS = ("environment", "case", "metric", "unit", "sha")


@dataclass(frozen=True, slots=True)
class StoredWorker:
    """One worker's values: its summary and quantiles, not its samples."""

    round: int
    samples: int
    values: Mapping[str, float]
    quantiles: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The workers that one session measured, of commit ``sha``. ``created_at`` is ISO 8601."""

    id: str
    created_at: str
    sha: str
    workers: tuple[StoredWorker, ...]
    graph_events: tuple[GraphEvent, ...] = ()
    output: Mapping[str, OutputPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Baseline:
    """One case's stored measurements of commit ``sha`` in one environment.

    ``sessions`` may also be of earlier commits that a check found no difference from.
    """

    case: str
    source_hash: str
    sha: str
    environment: str
    created_at: str
    sessions: tuple[StoredSession, ...]
    extra_metrics: tuple[Metric, ...] = ()
    schema: int = BASELINE_SCHEMA

    def outputs(self) -> tuple[WorkerOutput, ...]:
        """Return the stored workers as base's outputs, session after session."""
        return tuple(output for session in self.by_session() for output in session)

    def of_commit(self) -> Baseline:
        """Return the baseline with the sessions of its own commit alone."""
        own = tuple(session for session in self.sessions if session.sha == self.sha)
        return replace(self, sessions=own)

    def by_session(self) -> tuple[tuple[WorkerOutput, ...], ...]:
        """Return the workers of each session as base's outputs, in the order of the sessions."""
        return tuple(
            tuple(
                WorkerOutput(
                    case=self.case,
                    side="base",
                    round=worker.round,
                    values=worker.values,
                    samples=worker.samples,
                    quantiles=worker.quantiles,
                    graph_events=session.graph_events,
                    extra_metrics=self.extra_metrics,
                    output=session.output,
                )
                for worker in session.workers
            )
            for session in self.sessions
        )


class _CheckedCases(msgspec.Struct):
    """The cases of ``commit`` that didn't differ in checks, with their baselines' commits."""

    commit: str
    alike: dict[str, str]


def keep_alike(
    folder: Path, commit: str, checked: Collection[str], alike: Mapping[str, str]
) -> None:
    """Keep in the cache ``folder`` which of the ``checked`` cases of ``commit`` are ``alike``."""
    before = kept_alike(folder, commit)
    others = {case: sha for case, sha in before.items() if case not in checked}
    folder.mkdir(parents=True, exist_ok=True)
    kept = msgspec.json.encode(_CheckedCases(commit, {**others, **alike}))
    write_file(folder / _ALIKE, kept.decode())


def kept_alike(folder: Path, commit: str) -> Mapping[str, str]:
    """Return what ``keep_alike`` kept of ``commit``: nothing if the cache has no valid file."""
    try:
        kept = msgspec.json.decode((folder / _ALIKE).read_bytes(), type=_CheckedCases)
    except (OSError, msgspec.MsgspecError):
        return {}
    return kept.alike if kept.commit == commit else {}


def with_run(
    old: Baseline | None, run: Run, measured: CaseRun, session_id: str, alike: str = ""
) -> Baseline:
    """Return the baseline that ``measured`` makes of ``old``.

    If ``old`` is of the same source, and of the same commit or of the commit ``alike``, the session
    is added to its sessions. It replaces a session of the same id, and only the last ten are kept.
    Otherwise the new session replaces all.
    """
    session = StoredSession(
        id=session_id,
        created_at=run.created_at,
        workers=tuple(
            StoredWorker(
                output.round, output.samples, dict(sorted(output.values.items())), output.quantiles
            )
            for output in measured.workers
        ),
        graph_events=measured.workers[0].graph_events,
        sha=run.side.sha,
        output=measured.workers[0].output,
    )
    fresh = Baseline(
        case=measured.case.id,
        source_hash=measured.case.source_hash,
        sha=run.side.sha,
        environment=run.environment.key,
        created_at=run.created_at,
        sessions=(session,),
        extra_metrics=measured.workers[0].extra_metrics,
    )
    same_source = old is not None and old.source_hash == measured.case.source_hash
    if old is None or not same_source or old.sha not in {run.side.sha, alike}:
        return fresh
    others = tuple(each for each in old.sessions if each.id != session_id)
    return replace(fresh, sessions=(*others, session)[-MOST_SESSIONS:])


def incomparable_reason(baseline: Baseline, environment: Environment, case: Case) -> Finding | None:
    """Return why ``case`` in ``environment`` can't be compared with ``baseline``, or None."""
    if baseline.environment != environment.key:
        return finding("other-environment", environment=baseline.environment)
    if baseline.source_hash != case.source_hash:
        return finding("source-changed")
    return None


def make_environment(facts: Mapping[str, str]) -> Environment:
    """Return the environment of ``facts``. Its key ends in a hash of all facts except notes.

    A key reads ``linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d``, so that people recognise it.
    """
    ordered = dict(sorted(facts.items()))
    digest = hashlib.sha256(json.dumps(_deciding(ordered)).encode()).hexdigest()[:8]
    device = facts.get("device_name") or "cpu"
    parts = (
        facts.get("system", "system"),
        facts.get("machine", "machine"),
        device,
        f"torch{facts.get('torch', 'none').split('+')[0]}",
        f"py{'.'.join(facts.get('python', '0.0').split('.')[:2])}",
        digest,
    )
    return Environment("-".join(_plain(part) for part in parts), ordered)


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return each deciding fact that differs, with both values. A dash means no value."""
    first, second = _deciding(first), _deciding(second)
    return {
        name: (first.get(name, "–"), second.get(name, "–"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _deciding(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if not name.startswith(_NOTE)}


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).lower()[:40].strip("_.") or "unknown"


def require_schema(plain: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, if this perfci can't read the schema of a baseline."""
    schema = plain.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("its schema number is missing")
    if schema > BASELINE_SCHEMA:
        known = f"this perfci knows {BASELINE_SCHEMA}"
        raise ValueError(f"its schema is {schema} and {known}: update perfci")


def is_environment(folder: Path) -> bool:
    """Return whether ``folder``, in the folder of a store, is that of an environment."""
    return (folder / _FACTS).is_file()


class BaselineStore:
    """The baselines under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def environments(self) -> tuple[str, ...]:
        """Return the keys of the environments that have baselines.

        Raises DamagedFile for a folder of baselines whose facts are missing, or are those of
        another environment.
        """
        keys = self._folders()
        for key in keys:
            self._facts(key)
        return keys

    def load(self, environment: str, case: str) -> Baseline | None:
        """Return one case's baseline, or None. Raises DamagedFile for a damaged one."""
        path = self._path(environment, case)
        known = ENVIRONMENT_KEY.fullmatch(environment) and os.path.lexists(path)
        return _read(path) if known else None

    def load_all(self, environment: str) -> tuple[Baseline, ...]:
        """Return an environment's baselines in the order of their cases."""
        files = self._files(environment)
        if files:
            self._facts(environment)
        baselines = (_read(path) for path in files if path.name != _FACTS)
        return tuple(sorted(baselines, key=lambda baseline: baseline.case))

    def require_writable(self) -> None:
        """Raise OutsideError now if ``save_run`` could not write later."""
        with disk_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder) as probe:
                probe.write(b"x" * 4096)

    def save_run(
        self, run: Run, session_id: str, alike: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Path, ...]:
        """Store every case that was measured without a failure. Return the files written.

        ``alike`` has by case the commit whose sessions are kept.
        A damaged baseline is left as it is. DamagedFile is raised for it only after all other cases
        are stored, so that their measurements aren't lost.
        """
        folder = self._folder / run.environment.key
        written = []
        damaged: list[DamagedFile] = []
        with disk_errors(folder), locked(folder):
            _write(folder / _FACTS, encode(run.environment))
            for measured in run.cases:
                if not measured.workers or measured.failures:
                    continue
                path = self._path(run.environment.key, measured.case.id)
                try:
                    old = _read(path) if os.path.lexists(path) else None
                except DamagedFile as error:
                    damaged.append(error)
                    continue
                commit = alike.get(measured.case.id, "")
                stored = with_run(old, run, measured, session_id, commit)
                _write(path, _compact(encode(stored)))
                written.append(path)
        if damaged:
            raise damaged[0]
        return tuple(written)

    def remove(self, environment: str, case: str | None = None) -> tuple[Path, ...]:
        """Remove one case's baseline, or all of an environment. Return what was removed.

        With its last baseline, an environment's facts and folder are removed, too.
        """
        if environment not in self._folders():  # no facts are read: a damaged one can be removed
            return ()
        folder = self._folder / environment
        with disk_errors(folder), locked(folder):
            files = self._files(environment)
            wanted = None if case is None else self._path(environment, case)
            gone = [path for path in files if wanted in {None, path}]
            if {path.name for path in files} - {path.name for path in gone} == {_FACTS} and gone:
                gone.append(folder / _FACTS)
            for path in gone:
                path.unlink()
            if not any(folder.iterdir()):
                folder.rmdir()
        return tuple(gone)

    def differences(self, first: str, second: str) -> dict[str, tuple[str, str]]:
        """Return the facts in which two environments differ."""
        return differences(self._facts(first), self._facts(second))

    def _folders(self) -> tuple[str, ...]:
        """Return the names of the folders that hold baselines, or an environment's facts."""
        if not self._folder.is_dir():
            return ()
        return tuple(
            sorted(
                entry.name
                for entry in self._folder.iterdir()
                if entry.is_dir()
                and any(
                    path.name == _FACTS or _CASE_FILE.fullmatch(path.name)
                    for path in entry.iterdir()
                )
            )
        )

    def _facts(self, key: str) -> dict[str, str]:
        path = self._folder / key / _FACTS
        if not os.path.lexists(path):
            raise DamagedFile(
                "damaged-file",
                f"the baselines in {path.parent} are incomplete: {path} is missing",
                "Restore it from git, or remove that folder and run `perfci baseline update`.",
            )
        environment = _decoded(path, Environment)
        if environment.key != key:
            raise _damaged(path, f"it belongs to another environment ({environment.key})")
        return dict(environment.facts)

    def _files(self, environment: str) -> list[Path]:
        if not ENVIRONMENT_KEY.fullmatch(environment):
            return []
        return sorted((self._folder / environment).glob("*.json"))

    def _path(self, environment: str, case: str) -> Path:
        return self._folder / environment / _file_name(case)


def _file_name(case: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.=-]+", "_", case).strip("_.")[:80]
    return f"{plain}-{hashlib.sha256(case.encode()).hexdigest()[:8]}.json"


def _read(path: Path) -> Baseline:
    baseline = _decoded(path, Baseline)
    if baseline.environment != path.parent.name:
        raise _damaged(path, f"it belongs to another environment ({baseline.environment})")
    if _file_name(baseline.case) != path.name:
        raise _damaged(path, f"it belongs to another case ({baseline.case})")
    if not _SHA.fullmatch(baseline.sha):
        raise _damaged(path, f"{baseline.sha!r} is not a commit's hash")
    if not baseline.sessions or not all(session.workers for session in baseline.sessions):
        raise _damaged(path, "it holds no session, or one without workers")
    if baseline.sessions[-1].sha != baseline.sha:
        raise _damaged(path, "its last session is of another commit")
    return baseline


def _decoded(path: Path, kind: type[T]) -> T:
    try:
        if not _stays_inside(path):
            raise _damaged(path, "it is a link out of the folder of baselines")
        plain: Any = msgspec.json.decode(read_regular(path))
        if kind is Baseline:
            if not isinstance(plain, dict):
                raise _damaged(path, "it isn't a JSON object")
            require_schema(plain)
        return from_plain(plain, kind)
    except (ValueError, RecursionError) as error:  # of msgspec, the codec, and require_schema
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise OutsideError(
            "unreadable", f"{path} can't be read: {error.strerror}", _ADVICE
        ) from error


def _stays_inside(path: Path) -> bool:
    """Return whether ``path``, with its links followed, lies in the folder of baselines.

    Links are committed like files, and a stranger's link can point anywhere.
    """
    folder = os.path.realpath(path.parent.parent)
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _damaged(path: Path, why: str) -> DamagedFile:
    return DamagedFile("damaged-file", f"{path} is not a valid baseline: {why}", _ADVICE)


def _compact(text: str) -> str:
    """Put each list of numbers on one line: a worker's quantiles change together or not at all.

    Strings aren't touched: a string in JSON has no line break.
    """
    return _NUMBERS.sub(lambda match: f"[{' '.join(match[0][1:-1].split())}]", text)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock ``folder`` for this process. It is made if it is missing.

    Temporary files of killed writers are removed. The lock keeps living writers out.
    """
    with folder_held(folder):
        for leftover in folder.glob(".perfci-*"):
            leftover.unlink()
        yield


def _write(path: Path, text: str) -> None:
    """Write ``path`` in one step. A link there is replaced: it may lead out of the folder."""
    if path.is_symlink():
        path.unlink()
    write_file(path, text)


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into an OutsideError that says what to do."""
    try:
        yield
    except OSError as error:
        raise OutsideError(
            "unwritable",
            f"baselines can't be written to {folder}: {error.strerror}",
            "Make room, give this user the right to write there, or choose another folder "
            "(`baselines` in [tool.perfci]). Stored baselines are intact.",
        ) from error


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baselines of a folder, one per case and environment."""

    baselines: tuple[Baseline, ...]

    def __len__(self) -> int:
        return len(self.baselines)

    def __iter__(self) -> Iterator[Baseline]:
        return iter(self.baselines)

    def to_frame(self, *, workers: bool = False) -> pd.DataFrame:
        """Return a row for each case and metric, with its median over all sessions' workers.

        With ``workers`` a row for each worker's value. Values are in ``unit``, times in UTC.
        """
        import pandas as pd

        frame = pd.DataFrame(
            [row for baseline in self.baselines for row in _values(baseline)],
            columns=[*_KEY_COLUMNS, "session", "created_at", "round", "samples", "value"],
        )
        frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True, format="ISO8601")
        if workers:
            return frame
        return (
            frame.groupby(list(_KEY_COLUMNS), sort=False)
            .agg(
                created_at=("created_at", "max"),
                sessions=("session", "nunique"),
                workers=("value", "size"),
                median=("value", "median"),
                lowest=("value", "min"),
                highest=("value", "max"),
            )
            .reset_index()
        )


def _values(baseline: Baseline) -> Iterator[tuple[object, ...]]:
    metrics = (*METRICS.values(), *baseline.extra_metrics)
    units = {metric.name: metric.unit for metric in metrics}
    for session in baseline.sessions:
        for worker in session.workers:
            for metric, value in worker.values.items():
                unit = units.get(metric, "")
                yield (
                    *(baseline.environment, baseline.case, metric, unit, baseline.sha),
                    *(session.id, session.created_at, worker.round, worker.samples, value),
                )
