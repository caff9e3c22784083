"""Commands whose options are made of the formats of reports, other distributions' too.

They are made where a command is parsed or its help is shown: importing a command looks up nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perfci.errors import UsageError
    from perfci.render.exporters import Format

_FILE = click.Path(dir_okay=False, path_type=Path)


class FormatsCommand(click.Command):
    """A command with options made of the formats. A name that can't be had ends all but its help.

    A subclass has the ``options``.
    """

    @cached_property
    def _found(self) -> tuple[dict[str, Format], list[UsageError]]:
        from perfci.render.exporters import formats

        every = (option for one in self.params for option in (*one.opts, *one.secondary_opts))
        return formats({"help", *(option.lstrip("-") for option in every)})

    @property
    def formats(self) -> Mapping[str, Format]:
        """Every format that this command can write, by name."""
        return self._found[0]

    @cached_property
    def options(self) -> list[click.Option]:
        """What the formats add to the command."""
        raise NotImplementedError

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options as ``--help`` shows them: the formats' before the session's."""
        own = super().get_params(ctx)
        names = [one.name for one in self.params]
        at = names.index("log_dir") if "log_dir" in names else len(names)
        return [*own[:at], *self.options, *own[at:]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. UsageError where a distribution asks for a name that is not free."""
        for refused in self._found[1]:
            raise refused
        return super().invoke(ctx)


class ExportingCommand(FormatsCommand):
    """A command with ``--NAME FILE`` for each format; it gets those asked for as ``outputs``."""

    def __init__(self, *arguments: Any, required: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self._required = required

    @cached_property
    def options(self) -> list[click.Option]:
        """Return an option for each format."""
        return [
            _FormatOption(form, number, required=form.name == self._required)
            for number, form in enumerate(self.formats.values())
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and gather the files that were asked for by their formats' names."""
        rest = super().parse_args(ctx, args)
        given = (ctx.params.pop(str(option.name), None) for option in self.options)
        ctx.params["outputs"] = {
            name: path for name, path in zip(self.formats, given, strict=True) if path is not None
        }
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. UsageError for a broken exporter that was asked for."""
        for name in ctx.params["outputs"]:
            self.formats[name].load()  # now, not when hours have been measured
        return super().invoke(ctx)


class _FormatOption(click.Option):
    """``--NAME FILE``; the exporter is imported where its help is shown."""

    def __init__(self, form: Format, number: int, *, required: bool) -> None:
        super().__init__([f"--{form.name}", f"output_{number}"], type=_FILE, required=required)
        self._form = form

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self._form.help_line()
        return super().get_help_record(ctx)
