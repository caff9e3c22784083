"""Build a small git repository whose head commit got worse, and compare it in both ways.

``perfci compare`` measures both commits in pairs. ``perfci baseline update`` and ``perfci check``
store the base's numbers and compare head with them.

    python examples/demo.py [FOLDER] [perfci compare's options]

With options there is no check.

The repository is made from ``examples/demo/base``; its second commit lays ``examples/demo/head``
over it: one model slower, a graph break in another, the third untouched.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
IDENTITY = ["-c", "user.name=perfci demo", "-c", "user.email=demo@example.invalid"]
UNSIGNED = ["-c", "commit.gpgSign=false"]


def build(folder: Path) -> Path:
    """Make the demo's repository in ``folder`` anew; branches ``main`` and ``feature``."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(HERE / "demo" / "base", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Three models")
    git(folder, "checkout", "--quiet", "-b", "feature")
    shutil.copytree(HERE / "demo" / "head", folder, dirs_exist_ok=True)
    commit(folder, "Guard against overflow and divergence")
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit everything in ``folder``."""
    git(folder, "add", "--all")
    git(folder, *IDENTITY, *UNSIGNED, "commit", "--quiet", "--no-verify", "--message", message)


def git(folder: Path, *arguments: str) -> None:
    """Run git in ``folder``."""
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def main() -> int:
    """Build, compare, and say where the files are."""
    options = sys.argv[1:]
    named = bool(options) and not options[0].startswith("-")
    out = Path(options.pop(0) if named else "demo-output").resolve()
    repository = build(out / "repository")
    files = {
        "--markdown": out / "comment.md",
        "--json": out / "report.json",
        "--junit": out / "junit.xml",
        "--log-dir": out / "logs",
    }
    command = [sys.executable, "-m", "perfci", "compare", "main", "feature"]
    for option, path in files.items():
        command += [option, str(path)]
    done = subprocess.run([*command, *options], cwd=repository, check=False)
    codes = [done.returncode]
    if not options:  # they are compare's
        print("\nThe same against a stored baseline of main:\n")
        files["--markdown (check)"] = out / "check.md"
        codes.append(check(repository, files["--markdown (check)"]))
    print("\nLeft behind:")
    for option, path in {"repository": repository, **files}.items():
        print(f"  {option.lstrip('-'):<18} {path}")
    expected = set(codes) == {1}
    print(
        "\nperfci's exit code was 1: head got worse, as it was built to."
        if expected
        else f"\nperfci's exit codes were {codes}; 1 (a regression) was expected."
    )
    return 0 if expected else 1


def check(repository: Path, comment: Path) -> int:
    """Store the numbers of ``main``, and return the exit code of a check of ``feature``."""
    perfci = [sys.executable, "-m", "perfci"]
    subprocess.run([*perfci, "baseline", "update", "main"], cwd=repository, check=False)
    command = [*perfci, "check", "feature", "--markdown", str(comment)]
    return subprocess.run(command, cwd=repository, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
