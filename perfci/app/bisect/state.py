"""What is kept of a search in the cache folder, so that a killed one goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from perfci.bisect.search import Search
from perfci.checkout.disk import explaining
from perfci.checkout.lock import take_if_free
from perfci.errors import DamagedFile, OutsideError
from perfci.files import read_regular, write_file
from perfci.model.bisection import NamedCommit
from perfci.model.codec import CodecError, decode, encode
from perfci.model.why import Why


@dataclass(frozen=True, slots=True)
class Sought:
    """What is searched for. Its changes are logarithms of ratios, or differences."""

    case: str
    metric: str
    unit: str
    direction: str
    scale: Literal["log", "difference"]
    environment: str


@dataclass(frozen=True, slots=True)
class Range:
    """Commits by first parents, the oldest first, and how far the search in them is.

    ``good`` is the commit before the first; ``merged_by`` the merge whose branch they are, or
    empty. ``why`` has the reason for each position that was skipped, by its number.
    """

    good: NamedCommit
    commits: tuple[NamedCommit, ...]
    search: Search
    merged_by: str = ""
    why: Mapping[str, str] = field(default_factory=dict)

    def at(self, position: int) -> NamedCommit:
        """Return the commit at a position of the search."""
        return self.commits[position - 1] if position else self.good


@dataclass(frozen=True, slots=True)
class State:
    """All that a search knows. ``sought`` is None until the ends were compared.

    ``whys`` are those of culprits, by the newest commit of each.
    """

    ranges: tuple[Range, ...]
    sought: Sought | None = None
    whys: Mapping[str, Why] = field(default_factory=dict)


class StateFile:
    """The state of one search, written whole after each step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> State | None:
        """Return what an earlier start knew, or None. DamagedFile for what is no state."""
        try:
            return decode(read_regular(self._path), State)
        except FileNotFoundError:
            return None
        except (CodecError, OSError) as error:
            raise DamagedFile(
                "damaged-search",
                f"what {self._path} holds of an earlier search can't be read: {error}",
                "Begin anew with --restart.",
            ) from error

    def write(self, state: State) -> None:
        """Keep ``state``. OutsideError where the disk is full."""
        with explaining(f"writing {self._path}"):
            write_file(self._path, encode(state))

    def forget(self) -> None:
        """Remove what an earlier start knew."""
        with explaining(f"removing {self._path}"):
            self._path.unlink(missing_ok=True)


@contextmanager
def state_file(folder: Path, *identity: str) -> Iterator[StateFile]:
    """Give the state's file of the search that ``identity`` makes; nobody else has it meanwhile."""
    name = hashlib.sha256("\0".join(identity).encode(errors="surrogateescape")).hexdigest()[:16]
    with explaining(f"making {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / f"{name}.lock")
    if lock is None:
        raise OutsideError(
            "search-running",
            "another perfci searches the same range for the same change",
            "Wait until it has ended.",
        )
    try:
        yield StateFile(folder / f"{name}.json")
    finally:
        lock.release(remove=True)
