"""``perfci completion``: the shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perfci.cli.printing import show
from perfci.render.clean import clean_lines


@click.command("completion", epilog='Example: eval "$(perfci completion bash)"   (in ~/.bashrc)')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL."""
    from perfci.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    show(clean_lines(kind(cli, {}, "perfci", "_PERFCI_COMPLETE").source() + "\n"))
