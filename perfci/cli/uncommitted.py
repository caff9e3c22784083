"""Refusing a working tree with changes where a commit is needed, and naming the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.errors import UsageError

if TYPE_CHECKING:
    from perfci.checkout.repository import Repository, Resolved

_NAMED = 3


def require_commit(
    repository: Repository, side: Resolved, slug: str, why: str, instead: str
) -> None:
    """Raise UsageError ``slug`` where ``side`` has changes: the first of them, and ``why`` not."""
    from perfci.report.clean import clean_line

    if not side.dirty:
        return
    changes = repository.changes(side)
    more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    named = ", ".join(clean_line(name) for name in changes[:_NAMED])
    raise UsageError(
        slug,
        f"the working tree has changes, and {why}: {named}{more}",
        f"Commit them (what needn't be kept: ignore it, in .gitignore), or {instead}",
    )
