"""A command of the user's that goes before Python where workers start: a container, a NUMA node.

It has to become Python itself (``exec``): perfci speaks with workers over descriptors that they
inherit, pins them, and watches and ends them by their process id.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from perfci.errors import UsageError

_ANSWER_S = 60.0
_PROBE = "import os, sys; os.write(int(sys.argv[1]), f'{os.getpid()} {os.getcwd()}'.encode())"
_ADVICE = (
    "ssh, docker run and srun start another process, elsewhere: put them before perfci itself, as "
    "in `docker run IMAGE perfci compare …`, or submit by --engine. What becomes the command that "
    "it is given works: numactl, taskset, setarch, env, chroot, nsenter."
)


def require_exec(launcher: Sequence[str], python: str, environment: Mapping[str, str]) -> None:
    """Raise UsageError where ``launcher`` doesn't become ``python`` with what it inherits."""
    here = os.getcwd()  # noqa: PTH109 (compared with what the other process says)
    answers, end = os.pipe()
    with open(answers, "rb") as answer:  # noqa: PTH123 (a descriptor)
        try:
            process = subprocess.Popen(
                [*launcher, python, "-c", _PROBE, str(end)],
                pass_fds=(end,),
                env=environment,
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
            output = process.communicate(timeout=_ANSWER_S)[0].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise _refused(launcher, f"gives no answer within {_ANSWER_S:g} s") from None
        pid, _, folder = answer.read().decode(errors="replace").partition(" ")
    if not pid:
        last = output.splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise _refused(launcher, f"gives Python no open descriptor of perfci's ({last[0]})")
    if int(pid) != process.pid:
        raise _refused(launcher, "starts Python as another process than its own")
    if folder != here:
        raise _refused(launcher, f"leaves the folder that it was started in, {here}, for {folder}")


def _refused(launcher: Sequence[str], what: str) -> UsageError:
    return UsageError("launcher", f"the launcher `{' '.join(launcher)}` {what}", _ADVICE)
