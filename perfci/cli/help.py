"""The help of commands with many options, in groups."""

from __future__ import annotations

from collections.abc import Iterable

import click

_FEW = 12
"""Most options that are shown as a single list."""
GROUPS = {
    "Common": frozenset(
        (
            *("config_path", "selection", "python", "base_python", "head_python"),
            *("last_failed", "no_confirm", "if_stored", "verbose", "quiet"),
        )
    ),
    "Report": frozenset(("why", "strict", "record", "history", "log_folder", "report_name")),
    "Time": frozenset(("rounds", "budget")),
    "Machines": frozenset(("shard", "engine", "shards", "sbatch", "job_folder", "launcher")),
    "Expert": frozenset[str](),
}
"""Names of parameters by the heading that they stand under. The last group has all others."""
OUTPUT = "output_"
"""The beginning of the parameters' names of options that write a report's formats."""


def grouped(parameters: Iterable[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Return the parameters by heading. A few parameters get one heading for all."""
    shown = [
        parameter
        for parameter in parameters
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    if len(shown) <= _FEW:
        return {"Options": [*shown]}
    groups: dict[str, list[click.Parameter]] = {name: [] for name in GROUPS}
    for parameter in shown:
        groups[_heading(str(parameter.name))].append(parameter)
    return {name: members for name, members in groups.items() if members}


def _heading(name: str) -> str:
    if name.startswith(OUTPUT):
        return "Report"
    if name in {"help", "_click_default_help"}:
        return "Common"
    *_, last = GROUPS
    return next((heading for heading, names in GROUPS.items() if name in names), last)


class GroupedCommand(click.Command):
    """A command that shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each group under its heading."""
        for heading, members in grouped(self.get_params(ctx)).items():
            records = [member.get_help_record(ctx) for member in members]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])
