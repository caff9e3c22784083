"""Isolates measured code: no tokens in its reach.

Another process's environment and memory (``/proc/PID/environ``, ``mem``, ptrace) are open to the
same user, so a benchmark could read every secret of the shell that started perfci and of the
runner. perfci closes its own process, by ``PR_SET_DUMPABLE``.

A launcher has to become Python itself (``exec``): perfci speaks with workers over descriptors that
they inherit, pins them, and watches and ends them by their process id.

actions/checkout leaves its token in git's configuration by default: up to v5 as an ``extraheader``
of the repository, from v6 on in a file below ``$RUNNER_TEMP`` that an ``includeIf.gitdir`` names.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from perfci.errors import UsageError
from perfci.files import expanded
from perfci.measure.checkout.git import attempt

_PR_SET_DUMPABLE = 4
"""The option's number in ``sys/prctl.h``."""
_LAUNCHER_ANSWER_S = 60.0
"""Longest time that a launcher may take to become Python."""
_MARK = "PERFCI_LAUNCHED"
"""Variable that a launcher has to pass on, as it has to pass on all of a worker's."""
_LAUNCHER_PROBE = (
    "import os, sys; "
    "os.write(int(sys.argv[1]), "
    "f'{os.getpid()} {os.environ.get(sys.argv[2])} {os.getcwd()}'.encode())"
)
_ADVICE = (
    "ssh, docker run, apptainer exec and srun start another process: put them before perfci, as in "
    "`docker run IMAGE perfci compare …`, or submit by --slurm. What becomes the command that it "
    "is given works: numactl, taskset, setarch, env, chroot, nsenter."
)
_CONTAINERS = {
    **dict.fromkeys(
        ("docker", "podman", "nerdctl"),
        "starts Python in a container by another process, which passes no open descriptor on",
    ),
    **dict.fromkeys(
        ("apptainer", "singularity"),
        "stays alive next to Python, which is then not the process that perfci started",
    ),
}
"""Programs whose ``run`` and ``exec`` can't launch workers, with the reason."""
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


def close_to_others() -> None:
    """Close this process to all others of this user. Root, with all rights, can still read it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def require_exec(launcher: Sequence[str], python: str, environment: Mapping[str, str]) -> None:
    """Raise UsageError unless ``launcher`` becomes ``python`` and passes on what it inherits."""
    for program, verb in pairwise(launcher):
        reason = _CONTAINERS.get(Path(program).name)
        if reason and verb in {"run", "exec"}:
            raise _refused(launcher, reason)
    here = os.getcwd()  # noqa: PTH109 (compared with what the other process says)
    answers, end = os.pipe()
    with open(answers, "rb") as answer:  # noqa: PTH123 (a descriptor)
        try:
            process = subprocess.Popen(
                [*launcher, python, "-c", _LAUNCHER_PROBE, str(end), _MARK],
                pass_fds=(end,),
                env={**environment, _MARK: "1"},
                cwd=here,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise _refused(launcher, f"can't be started: {error.strerror}") from error
        finally:
            os.close(end)
        try:
            output = (
                process.communicate(timeout=_LAUNCHER_ANSWER_S)[0].decode(errors="replace").strip()
            )
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise _refused(launcher, f"gives no answer within {_LAUNCHER_ANSWER_S:g} s") from None
        pid, mark, folder = (answer.read().decode(errors="replace").split(" ", 2) + 3 * [""])[:3]
    if not pid:
        last = output.splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise _refused(launcher, f"gives Python no open descriptor of perfci's ({last[0]})")
    if int(pid) != process.pid:
        raise _refused(launcher, "starts Python as another process than its own")
    if mark != "1":
        raise _refused(launcher, "keeps the variables of perfci's workers from Python")
    if folder != here:
        raise _refused(launcher, f"leaves the folder that it was started in, {here}, for {folder}")


def _refused(launcher: Sequence[str], what: str) -> UsageError:
    return UsageError("launcher", f"the launcher `{' '.join(launcher)}` {what}", _ADVICE)


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
class GitSetting:
    """One setting of git: its file, its name, its value."""

    origin: str
    name: str
    value: str


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
    OutsideError if git is missing.
    """
    settings = list(_settings(root))
    origins = (
        f"{_IN_ADDRESS.sub('***', setting.name)} in {setting.origin}"
        for setting in settings
        if _is_secret(setting)
    )
    helpers = (setting.value.split()[0] for setting in settings if _keeps(setting))
    return GitSecrets(tuple(dict.fromkeys(origins)), tuple(dict.fromkeys(helpers)))


def _settings(root: Path) -> Iterator[GitSetting]:
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
            yield GitSetting(place, name, value)
            if _INCLUDED.fullmatch(name):
                file = (root / place).parent / expanded(value)
                if file.is_file() and file not in read:
                    read.add(file)
                    waiting.append(("--file", str(file)))


def _is_secret(setting: GitSetting) -> bool:
    if _HEADER.fullmatch(setting.name):
        return _SECRET_HEADER.match(setting.value.strip()) is not None
    return any(
        len(match["password"] or "") > 1 or _TOKEN.match(match["user"])
        for text in (setting.name, setting.value)
        for match in _IN_ADDRESS.finditer(text)
    )


def _keeps(setting: GitSetting) -> bool:
    """Return whether the setting names a helper that gives its credentials to any process."""
    words = setting.value.split()
    return (
        _CREDENTIAL_HELPER.fullmatch(setting.name) is not None
        and bool(words)
        and words[0] in _KEPT_READABLE
    )
