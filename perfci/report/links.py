"""The addresses of a comment's links, and the names of environments.

The only text of a report that becomes part of an address is a path inside the measured tree. It is
quoted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from perfci.model.report import Report
from perfci.model.run import Environment, Side
from perfci.report.clean import Safe, clean_line, code

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_LONGEST_PATH = 200
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~%-]*)*(?:#[A-Za-z0-9._-]*)?")
"""An address that Markdown can link as it is: no character in it ends a link or begins another."""
_DISTINGUISHING = ("torch", "cuda", "python", "driver", "cpu", "threads", "machine")
"""Facts that distinguish environments with the same device, the likeliest first."""
_SHOWN = frozenset({"environment", "device_name", *_DISTINGUISHING, "perfci"})
"""Facts that are always shown. Other facts are shown only if they differ. The JSON has all."""


@dataclass(frozen=True, slots=True)
class Links:
    """Links of one report.

    ``repository`` is the address of the repository that the CI event names, and ``commits`` are the
    commits known to be in it. ``details`` is the address of the report's page, or empty.
    """

    repository: str
    commits: frozenset[str]
    details: str = ""

    def page(self) -> Safe:
        """Return the link to the report's page, or nothing."""
        if not ADDRESS.fullmatch(self.details):
            return Safe("")
        return Safe(f"[Every row, drawn]({self.details})")

    def commit(self, sha: str, shown: str) -> Safe:
        """Return ``shown`` in code, as a link if ``sha`` is a known commit."""
        return self._link(shown, f"commit/{sha}" if sha in self.commits else "")

    def place(self, sha: str, file: str, line: int) -> Safe:
        """Return ``file:line`` in code. A link shows only the file's name, without its folders."""
        parts = file.split("/")
        known = (
            sha in self.commits
            and 0 < len(file) <= _LONGEST_PATH
            and file.isprintable()
            and not {"", ".", ".."} & set(parts)
        )
        if not known:
            return code(f"{file}:{line}")
        return self._link(f"{parts[-1]}:{line}", f"blob/{sha}/{quote(file)}#L{line}")

    def _link(self, shown: str, address: str) -> Safe:
        text = code(shown)
        if not address or not _REPOSITORY.fullmatch(self.repository):
            return text
        return Safe(f"[{text}]({self.repository}/{address})")


NO_LINKS = Links("", frozenset())


def known_links(repository: str, commits: frozenset[str], details: str = "") -> Links:
    """Return links to the whole SHAs among ``commits``, and to the page at ``details``."""
    whole = frozenset(sha for sha in commits if _SHA.fullmatch(sha))
    return Links(repository, whole, details)


def environment_names(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return a name for each report's environment: its device, and the facts that tell it apart."""
    return names_of([report.environment for report in reports])


def names_of(environments: Sequence[Environment]) -> tuple[str, ...]:
    """Return a name for each environment. If two names would be equal, the key follows."""
    devices = [
        clean_line(_device(environment), 60) or "an environment" for environment in environments
    ]
    names = []
    for environment, device in zip(environments, devices, strict=True):
        alike = [other for other, name in zip(environments, devices, strict=True) if name == device]
        names.append(", ".join((device, *_distinguishing(environment, alike))))
    return tuple(
        name if names.count(name) == 1 else f"{name} ({environment.key})"
        for environment, name in zip(environments, names, strict=True)
    )


def fact_table(report: Report) -> list[tuple[str, ...]]:
    """Return a table, heads first: head's main facts, and base's facts that differ."""
    made = f"{report.perfci_version}, {report.command}, {report.created_at}"
    head = {**_facts(report.environment, report.head), "perfci": made}
    if report.base_environment is None:
        return [("fact", "value"), *((fact, head[fact]) for fact in head if fact in _SHOWN)]
    base = {**_facts(report.base_environment, report.base), "perfci": made}
    table: list[tuple[str, ...]] = [("fact", "head", "base, where it differs")]
    for fact in dict.fromkeys((*head, *base)):
        before, after = base.get(fact, "–"), head.get(fact, "–")
        if before != after or fact in _SHOWN:
            table.append((fact, after, before if before != after else ""))
    return table


def _facts(environment: Environment, side: Side | None) -> dict[str, str]:
    """Return the facts of an environment to show.

    An untrusted fact named ``environment`` or ``interpreter`` can't replace perfci's own.
    """
    own = {"environment": environment.key, "interpreter": side.python if side else ""}
    return {**own, **dict(sorted(environment.facts.items())), **own}


def _device(environment: Environment) -> str:
    facts = environment.facts
    device = facts.get("device_name", "")
    return (device if device not in {"", "cpu"} else facts.get("cpu", "")) or environment.key


def _distinguishing(environment: Environment, alike: Sequence[Environment]) -> list[str]:
    return [
        clean_line(f"{fact} {environment.facts.get(fact, 'unknown')}", 60)
        for fact in _DISTINGUISHING
        if len({other.facts.get(fact) for other in alike}) > 1
    ]
