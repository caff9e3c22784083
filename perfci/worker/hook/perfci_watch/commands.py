"""Finds, from the command line of a child, the parts of it that can't be watched."""

from __future__ import annotations

import os

from .ownership import HOOK, VARIABLE

TYPE_CHECKING = False  # as in ``ownership``
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_OPAQUE = frozenset("IES")
"""Python's options under which a child ignores ``PYTHONPATH`` or has no ``site``."""
_NAMED = r"\b(?:python|pypy)[0-9.]*\b"
"""The name of a Python in a shell's text."""
_KEPT = r"PYTHONPATH=[^\s;]*\$\{?PYTHONPATH\b|\$\{?PYTHONPATH\b|\bexport\s+PYTHONPATH(?!=)"
"""Uses of ``PYTHONPATH`` in a shell that keep the folders on it."""
_COMMENT = r"(?m)^\s*#.*$"
_CLEARED = r"PYTHONPATH|PERFCI_WATCH|\bexec\s+-[al]*c"
"""Parts of a shell's text that may clear or replace the hook's variables, unless ``_KEPT``."""
_SUSPECT = r"\benv\b|\s[\"']?-[a-zA-Z]*[IES]"
"""Parts of a shell's command that may keep its Python from being watched."""
_EMPTIED = r"-[a-zA-Z0]*i[a-zA-Z]*|--ignore-environment"
"""The options of ``env`` that clear the environment."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
_WRAPPERS = frozenset(
    {
        *("chrt", "env", "flock", "ionice", "linux32", "linux64", "nice", "nohup", "numactl"),
        *("perf", "prlimit", "setarch", "setsid", "stdbuf", "strace", "sudo", "taskset", "time"),
        *("timeout", "unshare", "valgrind", "xargs"),
    }
)
"""Programs that run another program, which their arguments name."""
_SCRIPT_BYTES = 1 << 16
"""Most bytes of a shell's script that are read."""
_RESOLVED: dict[tuple[str, str], bool] = {}
"""Remembers, by word and value of ``PATH``, whether the word is a Python."""


def unwatched(
    program: str, words: Sequence[str], environment: Mapping[Any, Any] | None
) -> Iterator[tuple[str, str]]:
    """Yield ``(how, what)`` for each part of a child that perfci can't see.

    ``how`` is ``unwatched`` for a Python that perfci's hook doesn't reach, and ``program`` for a
    program that isn't a Python, whose reads aren't seen.
    """
    reached = environment is None or _reaches(environment)
    variables = os.environ if environment is None else environment
    line = _shebang(program)
    options = [*line[1:], *([program] if line else []), *words[1:]]
    name = line[0] if line else program
    while os.path.basename(name) in _WRAPPERS:
        if os.path.basename(name) == "env":
            options = _split(options)
            reached = reached and not _clears(options)
        while options and not _starts(options[0]):
            options.pop(0)
        if not options:
            break
        name = options.pop(0)
        line = [] if is_python(name) else _shebang(which(name))
        options = [*line[1:], *([name] if line else []), *options]
        name = line[0] if line else name
    shell = os.path.basename(name) in _SHELLS
    if shell:
        watched = _in_shell(options, variables, reached=reached)
    else:
        watched = reached and not _OPAQUE & set(_letters(options))
    if shell or not _runs_python(name):
        yield "program", os.path.basename(name)
    if (shell or _runs_python(name)) and not watched:
        yield "unwatched", " ".join(words)[:300]


def _in_shell(options: Sequence[str], variables: Mapping[Any, Any], *, reached: bool) -> bool:
    """Return whether each Python that a shell is to start will be watched.

    The shell's words and its script's text are read. Other scripts that it starts are not.
    """
    import re

    scripts = [option for option in options if os.path.isfile(option) and not _runs_python(option)]
    texts = [*options, *(re.sub(_COMMENT, "", _text_of(script)) for script in scripts[:1])]
    known = {os.fsdecode(key): os.fsdecode(value) for key, value in variables.items()}
    names_one = any(re.search(_NAMED, text) for text in texts) or any(map(_runs_python, options))
    if names_one and not reached:
        return False
    given = next(filter(_runs_python, options), "")  # `$0`, `$1` or `$@` may stand for this word
    for text in texts:
        if re.search(_CLEARED, text) and re.search(_CLEARED, re.sub(_KEPT, "", text)):
            return False
        for command in re.split(r"[;&|()\n`]+", text.replace("\\\n", " ")):
            if not re.search(_SUSPECT, command):
                continue
            tokens = [word.strip("\"'\\") for word in command.split()]
            tokens = [_expanded(part, known, given) for part in tokens]
            for index, token in enumerate(tokens):
                if _runs_python(token):
                    before, after = tokens[:index], tokens[index + 1 :]
                    if _OPAQUE & set(_letters(after)) or ("env" in before and _clears(before)):
                        return False
    return True


def _expanded(token: str, variables: Mapping[str, str], given: str) -> str:
    if not token.startswith("$"):
        return token
    name = token.strip('${}"')
    return given if name in {"@", "*"} or name.isdigit() else variables.get(name, token)


def _clears(options: Sequence[str]) -> bool:
    """Return whether the options of ``env``, up to the program, remove the hook's variables."""
    import re

    for option in options:
        if _starts(option):
            return False
        if re.fullmatch(_EMPTIED, option) or "PYTHONPATH" in option or VARIABLE in option:
            return True
    return False


def _split(options: Sequence[str]) -> list[str]:
    """Return the words of ``env``, with the text of its option ``-S`` split into words."""
    import re

    words: list[str] = []
    for option in options:
        if any(map(_starts, words)):
            words.append(option)
        else:
            words += re.sub(r"^(?:-([a-zA-Z]*)S|--split-string=)", r"-\1 ", option).split()
    return words


def _starts(word: str) -> bool:
    """Return whether a wrapper's word is a Python, a shell or a script, which the wrapper runs."""
    if _runs_python(word) or os.path.basename(word) in _SHELLS:
        return True
    path = which(word)
    return os.path.isfile(path) and os.access(path, os.X_OK) and bool(_shebang(path))


def _runs_python(program: str) -> bool:
    """Return whether ``program`` is a Python by its own name, or by the name of a link's target."""
    if is_python(program):
        return True
    key = program, os.environ.get("PATH", "")
    if key not in _RESOLVED:
        _RESOLVED[key] = is_python(os.path.realpath(which(program)))
    return _RESOLVED[key]


def _text_of(script: str) -> str:
    try:
        with open(script, "rb") as file:
            return os.fsdecode(file.read(_SCRIPT_BYTES))
    except OSError:  # the shell can't read it either
        return ""


def is_python(program: str) -> bool:
    """Return whether ``program`` is a Python by its name."""
    name = os.path.basename(program)
    rest = name.removeprefix("python" if name.startswith("python") else "pypy")
    return rest != name and rest.strip("0123456789.") in {"", "d", "t", "td", "w"}


def _reaches(environment: Mapping[Any, Any]) -> bool:
    """Return whether a Python with this environment finds perfci's ``sitecustomize`` first.

    Inductor passes ``sys.path`` on to its children, and a benchmark may have put a folder first.
    """
    texts = {os.fsdecode(key): os.fsdecode(value) for key, value in environment.items()}
    folders = texts.get("PYTHONPATH", "").split(os.pathsep)
    if VARIABLE not in texts or HOOK not in folders:
        return False
    before = folders[: folders.index(HOOK)]
    return not any(os.path.exists(f"{folder or '.'}/sitecustomize.py") for folder in before)


def _letters(options: Sequence[str]) -> Iterator[str]:
    """Yield the letters of Python's own options, up to the program that Python runs."""
    waiting = iter(options)
    for option in waiting:
        if not option.startswith("-") or option in {"-", "--"}:
            return
        if option.startswith("--"):
            if option == "--check-hash-based-pycs":
                next(waiting, None)
            continue
        for index, letter in enumerate(option[1:]):
            if letter in "cm":
                return
            if letter in "WX":
                if index == len(option) - 2:
                    next(waiting, None)
                break
            yield letter


def _shebang(program: str) -> list[str]:
    try:
        with open(program, "rb") as file:
            first = file.readline(256) if file.read(2) == b"#!" else b""
    except OSError:
        return []
    return os.fsdecode(first).split()


def which(program: str) -> str:
    """Return the path of a program, or its name if it isn't on ``PATH``."""
    if "/" in program:
        return program
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK):
            return path
    return program
