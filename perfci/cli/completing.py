"""What a shell completes besides commands and options: revisions, cases, metrics.

It is asked at each Tab, so it reads what is there and imports no benchmark: git's refs, the
benchmark files' source, and the cases that the last command which listed them kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from perfci.errors import PerfciError

_MOST = 500
"""More fit on no screen."""


def refs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a branch, a tag, HEAD or the working tree; of a range, its later end as well."""
    from perfci.checkout.repository import open_repository

    before, dots, begun = incomplete.rpartition("..")
    with suppress(PerfciError):  # a prompt is no place to say that here is no repository
        names = ["HEAD", *([] if dots else ["."]), *open_repository(Path.cwd()).names()]
        return _items(before + dots, begun, names)
    return []


def refs_or_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete a revision, or where none begins so a file."""
    return refs(context, parameter, incomplete) or [CompletionItem(incomplete, type="file")]


def cases(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last word of a selection: a benchmark, a tag, and beyond ``[`` a case."""
    with suppress(PerfciError):
        words, points = _known_cases()
        begun = re.split(r"[\s()]", incomplete)[-1]
        before = incomplete[: len(incomplete) - len(begun)]
        points = [case for case in points if "[" in begun or begun == case.partition("[")[0]]
        return _items(before, begun, [*words, *points])
    return []


def metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a metric."""
    from perfci.metrics import METRICS

    return _items("", incomplete, METRICS)


def _known_cases() -> tuple[list[str], list[str]]:
    """Return benchmarks with tags, and the cases with parameters that were listed last."""
    from perfci.app.project import cache_folder
    from perfci.app.remembered import Memory, Remembered
    from perfci.checkout.repository import open_repository
    from perfci.config.loading import load_config
    from perfci.errors import DamagedFile
    from perfci.session.plan import files_in
    from perfci.session.source import by_name, written_in

    repository = open_repository(Path.cwd())
    config = load_config(repository.root)
    files = files_in(repository.root, config.benchmarks, config.pattern)
    written = set(by_name(written_in(repository.root, files)))
    kept = Remembered()
    with suppress(DamagedFile):  # the next command that lists the cases writes it anew
        kept = Memory(cache_folder(), repository).read()
    names = sorted(written.union(name.partition("[")[0] for name in kept.names))
    return [*names, *kept.tags], [case for case in kept.names if "[" in case]


def _items(before: str, begun: str, names: Iterable[str]) -> list[CompletionItem]:
    fitting = [name for name in names if name.startswith(begun)]
    return [CompletionItem(before + name) for name in dict.fromkeys(fitting[:_MOST])]
