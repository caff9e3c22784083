"""Isolates measured code: no tokens in its reach, and an environment that keeps it quiet.

Another process's environment and memory (``/proc/PID/environ``, ``mem``, ptrace) are open to the
same user, so a benchmark could read every secret of the shell that started perfci and of the
runner. perfci closes its own process, by ``PR_SET_DUMPABLE``.

actions/checkout leaves its token in git's configuration by default: up to v5 as an ``extraheader``
of the repository, from v6 on in a file below ``$RUNNER_TEMP`` that an ``includeIf.gitdir`` names.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.config.keys import QuietTable
from perfci.errors import UsageError
from perfci.files import expanded
from perfci.measure.checkout.git import attempt, failure
from perfci.measure.machine.cores import CorePlan

_PR_SET_DUMPABLE = 4
"""The option's number in ``sys/prctl.h``."""
TOKEN_NAMES = (
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_PAT",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "PERFCI_GITLAB_TOKEN",
    "GITLAB_TOKEN",
    "FORGEJO_TOKEN",
    "GITEA_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",  # its reader can pose as this job to other services
)
OVERRIDE = "PERFCI_ALLOW_TOKEN"
"""``1`` lets perfci measure although benchmarks can read a token."""
_HEADER = re.compile(r"http\.(?:.*\.)?extraheader", re.IGNORECASE | re.DOTALL)
_SECRET_HEADER = re.compile(r"[\w-]*(auth|token|cookie|secret|key)[\w-]*\s*:\s*\S", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)(?P<user>[^/\s@:]+)(?P<password>:[^/\s@]*)?(?=@)")
_TOKEN = re.compile(r"gh[a-z]_|github_pat_|glpat-|[\w-]{36}")
"""Matches a user name in a URL that is a token: GitHub's, GitLab's, or 36 characters and more."""
_INCLUDED = re.compile(r"include(?:if\..*)?\.path", re.IGNORECASE | re.DOTALL)
_CREDENTIAL_HELPER = re.compile(r"credential\.(?:.*\.)?helper", re.IGNORECASE | re.DOTALL)
_KEPT_READABLE = {"store", "cache"}
"""git's credential helpers that give what they keep to any process of the user."""


_ALLOWED = frozenset(
    {
        "CC", "CXX", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL",
        "TERM", "TZ", "USER", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
_RECORDED_PREFIXES = ("CUBLAS_", "GLOO_", "NCCL_", "UCX_", "VLLM_")
"""Begin settings of communication and serving libraries. They decide speed, and so are facts."""
_ALLOWED_PREFIXES = (
    *("LC_", "CUDA_", "NVIDIA_", "TORCH", "PYTORCH_", "TRITON_", "KMP_", "HF_HUB_"),
    *_RECORDED_PREFIXES,
)
_REFUSED = frozenset({"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_LOGS", "TORCHINDUCTOR_CACHE_DIR"})
"""These change what torch does. They are passed only if the user names them."""
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")
"""A variable with one of these words in its name is passed only if the user names it."""
_MALLOC = {
    # glibc keeps freed pages. Without these settings, tensors over 128 KiB page-fault on each call
    # in some processes.
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}
_NETWORK_OFF = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def close_to_others() -> None:
    """Close this process to all others of this user. Root, with all rights, can still read it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def tokens_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the tokens that are set and not empty."""
    return tuple(name for name in TOKEN_NAMES if environment.get(name))


def overridden(environment: Mapping[str, str]) -> bool:
    """Return whether the environment lets perfci measure although benchmarks can read a token."""
    return environment.get(OVERRIDE) == "1"


def refuse_secrets(inherited: Mapping[str, str], root: Path) -> None:
    """Raise UsageError if benchmarks could read a token in the environment or in git's settings."""
    if overridden(inherited):
        return
    trusting = f"Where you trust the code on both sides: --allow-token, or {OVERRIDE}=1."
    if present := tokens_in(inherited):
        raise UsageError(
            "token-in-environment",
            f"{present[0]} is set, and benchmarks are other people's code",
            f"Measure in a job without it (docs/security.md). {trusting}",
        )
    if kept := git_secrets(root).settings:
        raise UsageError(
            "token-in-git",
            f"git keeps a credential ({kept[0]}), and benchmarks are other people's code",
            f"Take it away; of actions/checkout: `persist-credentials: false`. {trusting}",
        )


@dataclass(frozen=True, slots=True)
class GitSecrets:
    """git's credentials that benchmarks could read: in ``settings`` or through ``helpers``.

    Each setting is given by its name, with secrets masked, and by its file.
    """

    settings: tuple[str, ...]
    helpers: tuple[str, ...]


def git_secrets(root: Path) -> GitSecrets:
    """Return the credentials in git's configuration for ``root`` and in all files it includes.

    Files that are included only for other folders count, too: any process may read these files.
    OutsideError if git is missing, or refuses the repository.
    """
    place = attempt(root, "rev-parse", "--git-dir")
    if place.status and "not a git repository" not in place.error:
        raise failure(place, "rev-parse")  # then `git config` lists less, and says nothing
    secrets: dict[str, None] = {}
    helpers: dict[str, None] = {}
    for file, name, value in _settings(root):
        if _is_secret(name, value):
            secrets[f"{_IN_ADDRESS.sub('***', name)} in {file}"] = None
        words = value.split()
        if _CREDENTIAL_HELPER.fullmatch(name) and words and words[0] in _KEPT_READABLE:
            helpers[words[0]] = None
    return GitSecrets(tuple(secrets), tuple(helpers))


def _settings(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the file, the name and the value of each setting."""
    read: set[Path] = set()
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        arguments = ("config", *waiting.pop(), "--includes", "--show-origin", "--null", "--list")
        listed = attempt(root, *arguments)
        if listed.status:  # a file that went away, or that git itself can't read
            continue
        fields = listed.output.split("\0")
        for origin, setting in zip(fields[::2], fields[1::2], strict=False):
            name, _, value = setting.partition("\n")
            place = origin.removeprefix("file:")
            yield place, name, value
            if _INCLUDED.fullmatch(name):
                file = (root / place).parent / expanded(value)
                if file.is_file() and file not in read:
                    read.add(file)
                    waiting.append(("--file", str(file)))


def _is_secret(name: str, value: str) -> bool:
    if _HEADER.fullmatch(name):
        return _SECRET_HEADER.match(value.strip()) is not None
    return any(
        len(match["password"] or "") > 1 or _TOKEN.match(match["user"])
        for text in (name, value)
        for match in _IN_ADDRESS.finditer(text)
    )


def child_environment(
    inherited: Mapping[str, str],
    quiet: QuietTable,
    threads: int,
    passed: Sequence[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return a worker's whole environment: allow-listed names, quiet settings, then ``extra``.

    ``passed`` names further variables that the user lets through. A variable whose name looks like
    a secret's passes only if it is named there.
    """
    environment = {name: value for name, value in inherited.items() if _may_pass(name, passed)}
    environment |= _NETWORK_OFF
    environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # is_available() then opens no context
    if quiet.hash_seed:
        environment["PYTHONHASHSEED"] = "0"
    if quiet.malloc:
        environment |= _MALLOC
    if quiet.threads:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = str(threads)
    if quiet.vec_isa:
        # spares Inductor a probe that takes half as long as a compile
        environment["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    if not quiet.gc:
        environment["PERFCI_GC"] = "1"
    return environment | dict(extra)


def quiet_facts(quiet: QuietTable, plan: CorePlan) -> dict[str, str]:
    """Return the settings as facts of the environment."""
    switched = {
        f"quiet_{name}": str(getattr(quiet, name)).lower() for name in QuietTable.__struct_fields__
    }
    facts = switched | {
        "worker_cores": str(len(plan.workers) or "all"),
        "threads": str(plan.threads),
    }
    if plan.near and plan.workers:  # where they aren't known, environments keep their keys
        facts["cores_near_gpu"] = str(len(plan.near.intersection(plan.workers)))
    return facts


def library_facts(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of communication and serving libraries, as facts of the environment.

    A name that looks like a secret's is left out, even if ``pass_env`` has it.
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(_RECORDED_PREFIXES) and _may_pass(name, ())
    }


def _may_pass(name: str, passed: Sequence[str]) -> bool:
    if name in passed:
        return True
    if name in _REFUSED or is_secret(name):
        return False
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)


def is_secret(name: str) -> bool:
    """Return whether a variable's name looks like a secret's."""
    return any(word in name.upper() for word in _SECRET_WORDS)


def host_facts() -> dict[str, str]:
    """Return the CPU's model, the architecture and the system, the same on every call."""
    return {
        "system": platform.system().lower(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
    }


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
