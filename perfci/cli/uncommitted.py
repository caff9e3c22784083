"""Changes of the working tree: refused where a commit is needed, and told where left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.cli.printing import say
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


def tell_left_out(repository: Repository, *sides: Resolved) -> None:
    """Say so where HEAD's commit is measured beside changes of the working tree, which are not."""
    from perfci.checkout.repository import WORKING_TREE

    if any(side.rev == WORKING_TREE for side in sides):
        return
    if repository.resolve("HEAD").sha in {side.sha for side in sides} and repository.is_dirty():
        say(
            "perfci: the working tree's uncommitted changes are on neither side; "
            "`.` in HEAD's place would measure them.",
            err=True,
        )
