"""``perfci init``: a configuration and a first benchmark, and what to do next."""

from __future__ import annotations

from pathlib import Path

import click

from perfci.errors import UsageError

_CONFIGURATION = """\
[tool.perfci]
benchmarks = "{benchmarks}"   # the folder of bench_*.py files
budget = "10m"              # for everything a command measures

[tool.perfci.metrics.latency_p50]
threshold = 0.05            # a slow-down of 5 % fails
"""

_BENCHMARK = '''\
"""A first benchmark. Replace the model by yours; `perfci list` shows the cases."""

import torch

import perfci


@perfci.benchmark(batch=[1, 16], mode=["eager"])
def feed_forward(batch, mode):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)
    ).eval()
    return perfci.inference(model, torch.randn(batch, 256), mode=mode, items=batch)
'''


@click.command("init", epilog="Example: perfci init --benchmarks benchmarks")
@click.option("--benchmarks", default="benchmarks", show_default=True, help="The folder to use.")
def command(benchmarks: str) -> None:
    """Write a configuration and a first benchmark, and say what to do next.

    Nothing that exists is overwritten.
    """
    from perfci.cli.surroundings import open_here

    root = open_here().root
    folder = (root / benchmarks).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{benchmarks} lies outside the repository",
            "Choose a folder inside it, so that its files are part of every commit.",
        )
    _configure(root, folder.relative_to(root.resolve()).as_posix())
    first = folder / "bench_first.py"
    if any(folder.glob("bench_*.py")):
        click.echo(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        first.write_text(_BENCHMARK, encoding="utf-8")
        click.echo(f"wrote    {benchmarks}/bench_first.py")
    click.echo(
        "\nNext:\n"
        "  1. perfci doctor             what on this machine disturbs measurements\n"
        "  2. git add and commit        both sides run head's benchmark files\n"
        "  3. perfci list               the cases that were found\n"
        "  4. perfci compare HEAD       your uncommitted changes against HEAD\n"
        "  5. perfci baseline update    store HEAD's numbers, for `perfci check`"
    )


def _configure(root: Path, benchmarks: str) -> None:
    import tomllib

    path = root / "pyproject.toml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        configured = "perfci" in tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "bad-toml", f"{path} can't be read: {error}", "Mend it, then run `perfci init` again."
        ) from error
    if configured or (root / "perfci.toml").exists():
        click.echo("kept     the configuration that is there")
        return
    gap = "\n" if text else ""
    path.write_text(text + gap + _CONFIGURATION.format(benchmarks=benchmarks), encoding="utf-8")
    click.echo(f"wrote    [tool.perfci] {'in' if text else 'to a new'} pyproject.toml")
