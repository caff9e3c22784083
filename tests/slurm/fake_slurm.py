"""``sbatch`` and ``scancel``, where there is no Slurm: they run real processes.

A state lies in the folder FAKE_SLURM: a process id for each task. The file ``away`` there stands
for a controller that doesn't answer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(os.environ["FAKE_SLURM"])


def sbatch(options: dict[str, str], script: str) -> int:
    (HERE / "options").write_text(repr(options))
    children = []
    first, last = map(int, options["array"].split("-"))
    for task in range(first, last + 1):
        with Path(options["output"].replace("%a", str(task))).open("wb") as log:
            child = subprocess.Popen(
                ["sh", script],
                cwd=options["chdir"],
                env={**os.environ, "SLURM_ARRAY_TASK_ID": str(task)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (HERE / f"task-{task}").write_text(str(child.pid))
        children.append(child)
    print("7", flush=True)
    return max(abs(child.wait()) for child in children)


def main(program: str, arguments: list[str]) -> int:
    if (HERE / "away").exists():
        print(f"{program}: error: Unable to contact slurm controller", file=sys.stderr)
        return 1
    pairs = (one.removeprefix("--").partition("=") for one in arguments if one.startswith("--"))
    if program == "sbatch":
        return sbatch({name: value for name, _, value in pairs}, arguments[-1])
    for path in HERE.glob("task-*"):
        with suppress(ProcessLookupError):
            os.killpg(int(path.read_text()), signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[0]).name, sys.argv[1:]))
