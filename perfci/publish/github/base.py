"""Whether what was measured was compared with the commit that it is to be compared with.

That is where a pull request left its target, and the commit that a merge group is built on. A
pull request is retargeted without a push, and a run that is started again still has the target
of its event: what was measured then says nothing of the target it has now. The report's word for
its base can be forged like its numbers; this finds wrong wiring.
"""

from __future__ import annotations

from perfci.model.report import Report
from perfci.publish.failures import Refused
from perfci.publish.forge import Forge
from perfci.publish.github.event import SHA, MergeGroup
from perfci.publish.github.pull import Pull
from perfci.render.clean import clean_line


def caveat_of_base(client: Forge, found: Pull | MergeGroup, report: Report) -> str:
    """Return why the base of ``report``, a `compare`, isn't that of ``found``; nothing where it is.

    What a stored baseline was measured on is no commit of the pull request's history. The head of
    ``report`` has to be known as measured (see ``require_measured``).
    """
    if report.command != "compare":
        return ""
    if isinstance(found, MergeGroup):
        return _caveat_of_group(found, report)
    return _caveat_of_pull(client, found, report)


def _caveat_of_group(group: MergeGroup, report: Report) -> str:
    if not group.base_sha:
        return "with which commit to compare isn't known: the merge group's branch names none"
    base = report.base.sha if report.base else ""
    if base == group.base_sha:
        return ""
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the merge group is built on "
        f"{group.base_sha[:12]}"
    )


def _caveat_of_pull(client: Forge, pull: Pull, report: Report) -> str:
    base, target = report.base.sha if report.base else "", clean_line(pull.target, 100)
    try:
        left = client.leaves(pull, report.head.sha)
        if left and (base == left or _is_between(client, left, base, pull.target)):
            return ""
    except Refused:
        return f"with which commit of {target} to compare isn't known: the token may not read them"
    there = left[:12] or f"no commit that {client.service.name} knows"
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the {pull.term.name} leaves "
        f"{target} at {there}"
    )


def _is_between(client: Forge, left: str, base: str, target: str) -> bool:
    """Say whether ``base`` is on the target since ``left``: who compares with its tip may."""
    # only a whole SHA is asked for: what a report says must not become another request
    return (
        SHA.fullmatch(base) is not None
        and client.is_ancestor(base, target)
        and client.is_ancestor(left, base)
    )
