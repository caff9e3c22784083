"""Releases of a package, each in an environment of its own that is kept, by pip."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfci.checkout.disk import disk_error, explaining
from perfci.checkout.environment import lay_over
from perfci.checkout.lock import take
from perfci.errors import MeasureError, OutsideError, PerfciError
from perfci.units import format_duration

_LISTED = "Available versions:"
_TIMEOUT_S = 1800.0
_WHEELS = ("--only-binary", ":all:")
"""Installing a wheel runs none of its code."""


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases of ``package`` for ``python``, from the index that pip's settings name.

    Each has an environment below ``folder``, laid over the one that ``python`` has: what the
    release asks for and that one doesn't have is installed with it. ``environment`` are the
    variables that pip gets.
    """

    package: str
    python: str
    folder: Path
    environment: Mapping[str, str] = field(repr=False)

    def versions(self) -> tuple[str, ...]:
        """Return those with a wheel for this Python and machine, the oldest first."""
        printed = self._pip("index", "versions", *_WHEELS, self.package)
        lines = (one for one in printed.splitlines() if one.startswith(_LISTED))
        listed = next(lines, _LISTED)[len(_LISTED) :].split(",")
        return tuple(one.strip() for one in reversed(listed) if one.strip())

    def python_of(self, version: str) -> str:
        """Return the Python of the environment that has ``version``, made if it isn't there."""
        identity = f"{self.python}\0{self.package}\0{version}".encode(errors="surrogateescape")
        place = self.folder / hashlib.sha256(identity).hexdigest()[:16]
        done = place / "installed"
        with explaining(f"making {place}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with take(place.with_suffix(".lock")):
                if not done.exists():
                    shutil.rmtree(place, ignore_errors=True)
                    self._install(version, place)
                    done.write_text(version, encoding="utf-8")
        return str(place / "bin" / "python")

    def _install(self, version: str, place: Path) -> None:
        lay_over(self.python, place, self._run)
        python = str(place / "bin" / "python")
        asked = ("install", "--no-input", *_WHEELS, f"{self.package}=={version}")
        self._pip("--python", python, *asked)

    def _pip(self, *arguments: str) -> str:
        quiet = ("--disable-pip-version-check", "--no-color")
        return self._run(self.python, "-m", "pip", *quiet, *arguments)

    def _run(self, *command: str) -> str:
        """Return what a command prints. MeasureError where it fails."""
        try:
            done = subprocess.run(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise OutsideError(
                "index-too-slow",
                f"pip was not done with {self.package} after {format_duration(_TIMEOUT_S)}",
                "Check that the index can be reached.",
            ) from error
        if done.returncode:
            raise self._failed(done.stderr)
        return done.stdout

    def _failed(self, said: str) -> PerfciError:
        full = disk_error("installing", said)
        if full and full.slug == "disk-full":
            return full
        lines = said.strip().splitlines() or ["no reason given"]
        errors = [one for one in lines if one.startswith("ERROR:")] or lines
        return MeasureError(
            "release-not-installed",
            f"{self.package} can't be installed: {errors[-1].removeprefix('ERROR:').strip()}",
            "pip takes its index from its own settings: PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf.",
        )
