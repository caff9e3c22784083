"""Baseline files: ``<folder>/<environment>/<case>.json``, one a case, reviewed like code.

Writes go to a temporary file that is flushed and renamed; a lock on the environment's folder
makes read-change-write safe with several writers.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from perfci.errors import DamagedFile, OutsideError
from perfci.record.codec import CodecError, encode, from_plain
from perfci.record.run import Environment, Run
from perfci.store.baseline import Baseline, DiffRow, diff_rows, with_run
from perfci.store.environment import differences
from perfci.store.upgrade import upgraded

T = TypeVar("T")

_FACTS = "environment.json"
_ADVICE = "Restore it from git, or remove it and run `perfci baseline update`."


class BaselineStore:
    """The baselines under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def environments(self) -> tuple[str, ...]:
        """Return the keys of the environments that have baselines."""
        if not self._folder.is_dir():
            return ()
        return tuple(
            sorted(entry.name for entry in self._folder.iterdir() if (entry / _FACTS).is_file())
        )

    def load(self, environment: str, case: str) -> Baseline | None:
        """Return one case's baseline, or None where there is none. DamagedFile for a bad one."""
        path = self._path(environment, case)
        return _read(path, environment) if path.exists() else None

    def load_all(self, environment: str) -> tuple[Baseline, ...]:
        """Return an environment's baselines in the order of their cases."""
        files = sorted((self._folder / environment).glob("*.json"))
        found = (_read(path, environment) for path in files if path.name != _FACTS)
        return tuple(sorted(found, key=lambda baseline: baseline.case))

    def require_writable(self) -> None:
        """Raise OutsideError now where ``save_run`` could not write later."""
        with _disk_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder) as probe:
                probe.write(b"x" * 4096)

    def save_run(self, run: Run, session_id: str) -> tuple[Path, ...]:
        """Store every case that was measured without a failure; return the files written."""
        folder = self._folder / run.environment.key
        written = []
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                _write(folder / _FACTS, encode(run.environment))
                for measured in run.cases:
                    if not measured.workers or measured.failures:
                        continue
                    path = self._path(run.environment.key, measured.case.id)
                    old = _read(path, run.environment.key) if path.exists() else None
                    _write(path, encode(with_run(old, run, measured, session_id)))
                    written.append(path)
        return tuple(written)

    def remove(self, environment: str, case: str | None = None) -> tuple[Path, ...]:
        """Remove one case's baseline, or an environment's all; return what was removed."""
        folder = self._folder / environment
        if not (folder / _FACTS).is_file():
            return ()
        with _disk_errors(folder), _locked(folder):
            path = self._path(environment, case) if case else None
            gone = tuple(p for p in sorted(folder.glob("*.json")) if path is None or p == path)
            for file in gone:
                file.unlink()
        if case is None:
            folder.rmdir()
        return gone

    def differences(self, first: str, second: str) -> dict[str, tuple[str, str]]:
        """Return the facts in which two environments differ."""
        return differences(self._facts(first), self._facts(second))

    def diff(self, first: str, second: str) -> tuple[DiffRow, ...]:
        """Return the cases that both environments hold, metric by metric."""
        others = {baseline.case: baseline for baseline in self.load_all(second)}
        return tuple(
            row
            for baseline in self.load_all(first)
            if baseline.case in others
            for row in diff_rows(baseline, others[baseline.case])
        )

    def _facts(self, key: str) -> dict[str, str]:
        path = self._folder / key / _FACTS
        return dict(_decoded(path, Environment).facts)

    def _path(self, environment: str, case: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9_.=-]+", "_", case).strip("_.")[:80]
        digest = hashlib.sha256(case.encode()).hexdigest()[:8]
        return self._folder / environment / f"{plain}-{digest}.json"


def _read(path: Path, environment: str) -> Baseline:
    baseline = _decoded(path, Baseline)
    if baseline.environment != environment:
        raise _damaged(path, f"it is of another environment ({baseline.environment})")
    return baseline


def _decoded(path: Path, kind: type[T]) -> T:
    try:
        plain = msgspec.json.decode(path.read_bytes())
        if kind is Baseline:
            if not isinstance(plain, dict):
                raise _damaged(path, "it holds no object")
            plain = upgraded(plain)
        return from_plain(plain, kind)
    except (msgspec.DecodeError, CodecError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise OutsideError(
            "baseline-unreadable", f"{path} can't be read: {error.strerror}", _ADVICE
        ) from error


def _damaged(path: Path, why: str) -> DamagedFile:
    return DamagedFile("damaged-baseline", f"the baseline {path} can't be believed: {why}", _ADVICE)


def _write(path: Path, text: str) -> None:
    """Replace ``path`` whole or not at all: flushed before it is renamed, the folder after."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # noqa: PTH101 (mkstemp gives a name)
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's own descriptor locked: no lock file is left in the user's repository."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutsideError(
            "baseline-unwritable",
            f"baselines can't be written to {folder}: {error.strerror}",
            "Make room or make it writable; what was stored before is intact.",
        ) from error
