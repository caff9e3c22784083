"""Building the library that sees from below which files a worker looks at (``hook/looks.c``).

It is loaded by ``LD_PRELOAD`` into workers and all that they start. Where it can't be had, no case
is known to run the same code on both sides.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import perfci.worker.hook

SWITCH = "PERFCI_LOOKS"
"""``off`` starts workers without the library. No configuration key: head's author writes that."""
PRELOAD = "LD_PRELOAD"

_SOURCE = Path(perfci.worker.hook.__file__).with_name("looks.c")
_OPTIONS = (
    *("-std=gnu11", "-shared", "-fPIC", "-O2", "-U_FORTIFY_SOURCE"),
    # glibc declares that no path is NULL; a program may ask for one all the same
    *("-fno-delete-null-pointer-checks", "-Wall", "-Wextra", "-Werror"),
)
_PROBE = "import os; raise SystemExit(not os.access(b'/\\x01perfci-looks/c', 0))"
_BUILD_S = 60.0
_CC_ADVICE = "Install a C compiler (Debian: apt install gcc), or name it in CC."


@dataclass(frozen=True, slots=True)
class LooksLibrary:
    """The library's path, and the compiler that built it; or why there is none, and what to do."""

    library: str = ""
    compiler: str = ""
    why: str = ""
    advice: str = ""

    def preloaded(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variable that loads the library, after those that the user preloads."""
        if not self.library:
            return {}
        return {PRELOAD: ":".join(filter(None, (environment.get(PRELOAD), self.library)))}


def seen_from_below(cache: Path, environment: Mapping[str, str]) -> LooksLibrary:
    """Return the library, built and kept below ``cache`` unless it is there."""
    if environment.get(SWITCH) == "off":
        return LooksLibrary(why=f"{SWITCH}=off", advice=f"Unset {SWITCH}.")
    named = environment.get("CC", "")
    names = [named] if named else ["cc", "gcc", "clang"]
    compiler = next(filter(None, (shutil.which(shlex.split(name)[0]) for name in names)), None)
    if compiler is None:
        return LooksLibrary(why=f"no C compiler ({', '.join(names)})", advice=_CC_ADVICE)
    command = (compiler, *shlex.split(named)[1:], *_OPTIONS)
    try:
        path = _kept(command, _SOURCE.read_text(encoding="utf-8"), cache.resolve() / "looks")
    except OSError as error:
        why = f"the library can't be kept in {cache}: {error.strerror}"
        return LooksLibrary(why=why, advice="Set PERFCI_CACHE_DIR to a folder that can be written.")
    except _BuildError as error:
        return LooksLibrary(why=str(error), advice=_CC_ADVICE)
    if any(sign in str(path) for sign in " :"):
        why = f"{PRELOAD} takes no path with a space or a colon ({path})"
        return LooksLibrary(why=why, advice="Set PERFCI_CACHE_DIR to another folder.")
    return LooksLibrary(str(path), compiler)


class _BuildError(Exception):
    """The compiler, or what it built, doesn't work here."""


@lru_cache(maxsize=4)
def _compiled(command: tuple[str, ...], source: str) -> bytes:
    """Return the library, after a Python has been asked whether it sees what that looks at."""
    with tempfile.TemporaryDirectory(prefix="perfci-looks-") as folder:
        made = Path(folder, "looks.so")
        try:
            built = subprocess.run(
                [*command, "-x", "c", "-", "-o", str(made), "-ldl", "-lpthread"],
                input=source, capture_output=True, text=True, check=False, timeout=_BUILD_S,
            )  # fmt: skip
            if built.returncode:
                first_line = (built.stderr.strip().splitlines() or ["nothing"])[0]
                raise _BuildError(f"{command[0]} can't build the library: {first_line}")
            preloaded = {**os.environ, PRELOAD: str(made)}
            tried = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _PROBE],
                env=preloaded, capture_output=True, check=False, timeout=_BUILD_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise _BuildError(f"{error.cmd[0]} took more than {_BUILD_S:g} s") from error
        if tried.returncode:
            raise _BuildError(f"{PRELOAD} doesn't bring it into {sys.executable}")
        return made.read_bytes()


def _kept(command: tuple[str, ...], source: str, folder: Path) -> Path:
    """Return the path of the library in ``folder``, built where it isn't there or was damaged."""
    key = _digest("\0".join((*command, source)).encode())
    for path in folder.glob(f"{key}-*.so"):
        if path.stem == f"{key}-{_digest(path.read_bytes())}":
            return path
    library = _compiled(command, source)
    path = folder / f"{key}-{_digest(library)}.so"
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(library)
    Path(made).replace(path)  # another perfci may do the same now
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
