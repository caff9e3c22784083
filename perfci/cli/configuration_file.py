"""The user's configuration file: found before measuring, replaced whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfci.config.editing import with_keys
from perfci.config.loading import OWN_FILE, PROJECT_FILE
from perfci.errors import OutsideError
from perfci.files import read_regular, write_file


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """A configuration file and the text it had; ``text`` is None where there is none yet.

    ``name`` is what perfci reads it as, where ``path`` is what a link leads to: what the keys of
    a pyproject.toml are in depends on it.
    """

    path: Path
    name: str
    text: str | None

    def write(self, keys: Mapping[tuple[str, ...], float]) -> None:
        """Put ``keys`` into the file. OutsideError where it changed since it was read."""
        edited = with_keys(self.text or "", self.name, keys)
        read = None if self.text is None else self.text.encode("utf-8")
        try:
            if _content(self.path) != read:
                raise OutsideError(
                    "configuration-changed",
                    f"{self.path} was changed while perfci measured; nothing was written",
                    "Put the lines shown into it by hand.",
                )
            write_file(self.path, edited)
        except OSError as error:
            raise _unwritable(self.path, error) from error


def configuration_path(root: Path, explicit: Path | None) -> Path:
    """Return the file that configures perfci at ``root``: perfci.toml where there is none yet."""
    # what is there and is no file is an error of whoever reads it, not another file's turn
    found = (root / name for name in (OWN_FILE, PROJECT_FILE) if os.path.lexists(root / name))
    return explicit or next(found, root / OWN_FILE)


def configuration_file(root: Path, explicit: Path | None) -> ConfigurationFile:
    """Return that file with its text; OutsideError where it isn't writable. A link is followed."""
    # not Path.resolve, which has its own error for links in a circle; reading has the usual one
    named = configuration_path(root, explicit)
    path = Path(os.path.realpath(named))
    try:
        content = _content(path)
        text = None if content is None else content.decode("utf-8")
        if content is not None:
            with path.open("ab"):
                pass
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        raise _unwritable(path, error) from error
    except UnicodeDecodeError as error:
        raise OutsideError(
            "configuration-unreadable", f"{path} is not UTF-8 text", "Save it as UTF-8."
        ) from error
    return ConfigurationFile(path, str(named), text)


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None


def _unwritable(path: Path, error: OSError) -> OutsideError:
    return OutsideError(
        "configuration-unwritable",
        f"{path} can't be written: {error.strerror}",
        "Run without --write and put the lines shown into it by hand.",
    )
