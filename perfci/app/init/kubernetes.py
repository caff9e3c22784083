"""``init --kubernetes``: writes an indexed job, of which each pod measures one shard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfci.app.init.github import (
    caveat_of_install,
    commands_of,
    fit,
    project_install,
    with_perfci,
)
from perfci.app.init.new_files import NewFiles
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


def job(repository: Repository, options: KubernetesOptions) -> NewFiles:
    """Return the job; UsageError where it can't be made of the options."""
    caveat = "" if options.install else caveat_of_install("The pods install it")
    return NewFiles({JOB: _job(repository, options)}, caveat)


def _job(repository: Repository, options: KubernetesOptions) -> str:
    from perfci.app.init.workflows import workflow_template

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
