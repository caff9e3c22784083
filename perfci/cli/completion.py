"""``perfci completion``: the shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perfci.cli.printing import show
from perfci.report.clean import clean_lines


@click.command(
    "completion",
    epilog="""\b
Example: eval "$(perfci completion bash)"   in ~/.bashrc
         eval "$(perfci completion zsh)"    in ~/.zshrc, after compinit
         perfci completion fish > ~/.config/fish/completions/perfci.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL: commands, options, revisions, cases and metrics.

    Cases are those that the benchmark files write, and their parameters as last listed or measured.
    """
    from perfci.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    show(clean_lines(kind(cli, {}, "perfci", "_PERFCI_COMPLETE").source() + "\n"))
