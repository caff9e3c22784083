"""Credentials in git's configuration: whatever runs as this user can read them.

actions/checkout leaves its token there by default: up to v5 as an ``extraheader`` of the
repository, from v6 on in a file below ``$RUNNER_TEMP`` that an ``includeIf.gitdir`` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfci.checkout.command import attempt
from perfci.files import expanded

_HEADER = re.compile(r"http\.(?:.*\.)?extraheader", re.IGNORECASE | re.DOTALL)
_SECRET_HEADER = re.compile(r"[\w-]*(auth|token|cookie|secret|key)[\w-]*\s*:\s*\S", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)(?P<user>[^/\s@:]+)(?P<password>:[^/\s@]*)?(?=@)")
_TOKEN = re.compile(r"gh[a-z]_|github_pat_|glpat-|[\w-]{36}")
"""How a user's name begins that is a token: GitHub's, GitLab's, and any that is that long."""
_INCLUDED = re.compile(r"include(?:if\..*)?\.path", re.IGNORECASE | re.DOTALL)
_CREDENTIAL_HELPER = re.compile(r"credential\.(?:.*\.)?helper", re.IGNORECASE | re.DOTALL)
_KEPT_READABLE = {"store", "cache"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of git's: where it stands, its name, its value."""

    origin: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class GitSecrets:
    """What git keeps readable: ``settings`` that hold a credential, and ``helpers`` that do.

    Each setting is its name, without what is secret in it, and where it stands.
    """

    settings: tuple[str, ...]
    helpers: tuple[str, ...]


def git_secrets(root: Path) -> GitSecrets:
    """Look at the configuration that git has in ``root``, with all the files it includes.

    Also those that are included elsewhere alone: any process may read them as files. OutsideError
    without git.
    """
    settings = list(_settings(root))
    found = (f"{_masked(one.name)} in {one.origin}" for one in settings if _is_secret(one))
    helpers = (one.value.split()[0] for one in settings if _keeps(one))
    return GitSecrets(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(helpers)))


def _settings(root: Path) -> Iterator[Setting]:
    read: set[Path] = set()
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        arguments = ("config", *waiting.pop(), "--includes", "--show-origin", "--null", "--list")
        listed = attempt(root, *arguments)
        if listed.status:  # a file that went away, or that git itself can't read
            continue
        fields = listed.output.split("\0")
        for origin, setting in zip(fields[::2], fields[1::2], strict=False):
            name, _, value = setting.partition("\n")
            place = origin.removeprefix("file:")
            yield Setting(place, name, value)
            if _INCLUDED.fullmatch(name):
                file = (root / place).parent / expanded(value)
                if file.is_file() and file not in read:
                    read.add(file)
                    waiting.append(("--file", str(file)))


def _is_secret(setting: Setting) -> bool:
    if _HEADER.fullmatch(setting.name):
        return _SECRET_HEADER.match(setting.value.strip()) is not None
    return any(
        len(found["password"] or "") > 1 or _TOKEN.match(found["user"])
        for text in (setting.name, setting.value)
        for found in _IN_ADDRESS.finditer(text)
    )


def _keeps(setting: Setting) -> bool:
    words = setting.value.split()
    return (
        _CREDENTIAL_HELPER.fullmatch(setting.name) is not None
        and bool(words)
        and words[0] in _KEPT_READABLE
    )


def _masked(name: str) -> str:
    return _IN_ADDRESS.sub("***", name)
