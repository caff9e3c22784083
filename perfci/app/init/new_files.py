"""Files that ``init`` writes where none is yet. All are made before the first is written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfci.app.notices import Say
from perfci.errors import UsageError
from perfci.files import read_regular

DIFFERS = " (differs from what would be written now; delete it to have it written anew)"


@dataclass(frozen=True, slots=True)
class NewFiles:
    """``texts`` by their path in the repository.

    ``caveat`` is said before they are written. ``parts`` are of files that are the project's own:
    what each has to hold, and what to say where it is there without that.
    """

    texts: Mapping[Path, str]
    caveat: str = ""
    parts: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)

    def require_places(self, root: Path) -> None:
        """Raise UsageError where a file's folder can't be one of the repository."""
        for folder in dict.fromkeys(path.parent for path in self.texts):
            require_folder(root, folder)

    def write(self, root: Path, say: Say) -> None:
        """Write each that isn't there yet, and say which were written and which kept."""
        if self.caveat:
            say(self.caveat, err=True)
        for path, text in self.texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            try:
                with (root / path).open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                self._say_kept(root, path, say)
            else:
                say(f"wrote    {path}")

    def _say_kept(self, root: Path, path: Path, say: Say) -> None:
        there = _content(root / path)
        if path not in self.parts:
            same = there == self.texts[path].encode("utf-8")
            say(f"kept     {path}{'' if same else DIFFERS}")
            return
        say(f"kept     {path}")
        for needed, otherwise in self.parts[path].items():
            if needed.encode("utf-8") not in there:
                say(otherwise)


def require_folder(root: Path, folder: Path) -> None:
    """Raise UsageError where ``folder`` leads out of the repository, or a file is in its place."""
    if not (root / folder).resolve().is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{folder} lies outside the repository",
            "Choose a folder inside it, and no link that leads out: what is written is to be part "
            "of every commit.",
        )
    for place in (root / folder, *(root / folder).parents):
        if os.path.lexists(place):
            if not place.is_dir():
                raise UsageError(
                    "not-a-folder",
                    f"{place} is no folder, and {folder} is to be one",
                    "Move what is there.",
                )
            return


def _content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError:  # a folder, or a link to nowhere: no such text in any case
        return b""
