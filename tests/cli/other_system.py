"""Run perfci as on another system: python -m tests.cli.other_system SYSTEM ARGUMENT… [+ ARGUMENT…]

A command after a ``+`` runs in the same process, where the first one ended with 0.
What Python lacks there is hidden. The standard library and other distributions choose what they use
when they are imported, so these are imported first; perfci is what is tested.
"""

from __future__ import annotations

import asyncio  # noqa: F401
import importlib
import os
import signal
import sys

IMPORTED = ("click", "concurrent.futures", "getpass", "git", "jinja2", "msgspec",
            "multiprocessing", "pandas", "platformdirs", "psutil", "requests",
            "rich.console", "scipy.stats", "shutil", "sqlalchemy.dialects.sqlite", "sqlite3",
            "subprocess", "tempfile")  # fmt: skip
LINUX = "O_TMPFILE O_PATH eventfd memfd_create pidfd_open sched_getaffinity sched_setaffinity"
UNIX = """O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchmod fork getegid geteuid getgid
    getpgid getpgrp getuid killpg mkfifo nice pipe2 posix_spawn setpgid setsid statvfs sysconf
    uname wait4"""
UNIX_SIGNALS = """SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2
    pthread_sigmask setitimer sigtimedwait sigwait"""
UNIX_MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty")


def main() -> None:
    system = sys.argv.pop(1)
    for name in IMPORTED:
        importlib.import_module(name)
    windows = system == "win32"
    for name in (*LINUX.split(), *(UNIX.split() if windows else ())):
        delattr(os, name)
    for name in UNIX_SIGNALS.split() if windows else ():
        delattr(signal, name)
    for name in UNIX_MODULES if windows else ():
        sys.modules[name] = None  # type: ignore[assignment]
    sys.platform = system
    from perfci.cli.main import run

    code, left = 0, sys.argv[1:]
    while left and code == 0:
        end = left.index("+") if "+" in left else len(left)
        arguments, left = left[:end], left[end + 1 :]
        code = run(arguments)
    sys.exit(code)


if __name__ == "__main__":
    main()
