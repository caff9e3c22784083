"""Programs that answer as Slurm's do, where there is none: they run real processes.

Called by the name of the program. A state lies in the folder FAKE_SLURM: a process id and the
job's name for each task, and how a task ended where a test says so (``ends-TASK``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(os.environ["FAKE_SLURM"])
JOB = "7"


def sbatch(options: dict[str, str], script: str) -> None:
    (HERE / "options").write_text(repr(options))
    for task in options["array"].split(","):
        child = subprocess.Popen(
            ["sh", script],
            cwd=options["chdir"],
            env={**os.environ, "SLURM_ARRAY_TASK_ID": task},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        (HERE / f"task-{task}").write_text(f"{child.pid} {options['job-name']}")
    print(JOB)


def tasks(name: str) -> dict[str, int]:
    """Return the process ids of tasks that live."""
    found = {}
    for path in HERE.glob("task-*"):
        pid, own = path.read_text().split()
        if own == name and alive(int(pid)):
            found[path.name.removeprefix("task-")] = int(pid)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main(program: str, arguments: list[str]) -> int:
    if (HERE / "away").exists():
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        return 1
    pairs = (one.removeprefix("--").partition("=") for one in arguments if one.startswith("--"))
    options = {name: value for name, _, value in pairs}
    match program:
        case "sbatch":
            sbatch(options, arguments[-1])
        case "squeue":
            for task in tasks(options["name"]):
                print(f"{task}|RUNNING|None")
        case "scancel":
            for pid in tasks(options["name"]).values():
                os.killpg(pid, signal.SIGTERM)
        case "sacct":
            task = arguments[1].removeprefix(f"{JOB}_")
            ends = HERE / f"ends-{task}"
            print(ends.read_text() if ends.exists() else "COMPLETED|fake1")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[0]).name, sys.argv[1:]))
