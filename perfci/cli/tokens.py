"""``--allow-token``: measuring beside a token is refused unless somebody says they mean it."""

from __future__ import annotations

import click

_ALLOWED = f"{__name__}.allowed"


def _remember(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_ALLOWED] = value


# no parameter of the commands: a session's surroundings are all that asks for it
allow_token_option = click.option(
    "--allow-token",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Measure although a token is set or kept by git; benchmarks can read it.",
)


def token_allowed() -> bool:
    """Return whether the command that is running was told to measure beside a token."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_ALLOWED, False))
