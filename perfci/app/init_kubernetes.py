"""``init --kubernetes``: writes an indexed job, of which each pod measures one shard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfci.app.init_github import (
    commands_of,
    fit,
    is_text,
    own_requirement,
    project_install,
    with_perfci,
)
from perfci.app.notices import Say
from perfci.checkout.forge import forge_of
from perfci.checkout.repository import Repository
from perfci.errors import UsageError
from perfci.model.version import VERSION

JOB = Path("perfci-job.yaml")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """What the command line said about the job; ``image`` has git and Python."""

    shards: int
    image: str
    install: tuple[str, ...] = ()


def write_job(repository: Repository, options: KubernetesOptions, say: Say) -> None:
    """Write the job where there is none yet, and say so."""
    path = repository.root / JOB
    text = _job(repository, options)
    if not options.install and (caveat := own_requirement().caveat):
        say(f"{caveat}. The pods install it: say how, --install.", err=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        same = is_text(path, text)
        say(f"kept     {JOB}{'' if same else ' (differs from what would be written now)'}")
    else:
        say(f"wrote    {JOB}")


def _job(repository: Repository, options: KubernetesOptions) -> str:
    from perfci.app.workflows import workflow_template

    address = forge_of(repository)
    if not address:
        raise UsageError(
            "no-address",
            "the repository has no remote `origin` that a pod could clone",
            "git remote add origin https://…",
        )
    install = options.install or project_install(repository.root)
    return workflow_template("kubernetes.yml.j2").render(
        version=VERSION,
        shards=options.shards,
        image=fit(_IMAGE, options.image, "--image"),
        repository=address,
        install=with_perfci(commands_of(install, "--install")),
    )
