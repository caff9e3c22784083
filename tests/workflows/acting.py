"""act: the workflows run on this machine, with stand-ins for GitHub's own actions.

It proves that the steps fit together: names, paths, conditions, what is handed from job to job. It
proves nothing about permissions, and hands the token to every step, which GitHub doesn't.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from perfci.commands.workflows import ACTIONS

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]

# As the action: which branch is the default one isn't known, and others with fetch-depth: 0 alone.
_CHECKOUT = """\
name: checkout
inputs:
  ref: {default: main}
  fetch-depth: {default: "1"}
  persist-credentials: {default: ""}
runs:
  using: composite
  steps:
    - shell: bash
      env:
        REF: ${{ inputs.ref }}
        DEPTH: ${{ inputs.fetch-depth }}
      run: |
        git clone --quiet "$STAND_IN_SOURCE" .
        git remote set-head origin --delete
        commit=$(git rev-parse --verify "origin/$REF" || git rev-parse --verify "$REF")
        git checkout --quiet --detach "$commit"
        if [ "$DEPTH" != 0 ]; then
          for other in $(git for-each-ref --format='%(refname)' refs/remotes); do
            if [ "$other" != "refs/remotes/origin/$REF" ]; then git update-ref -d "$other"; fi
          done
        fi
"""
_SET_UP = """\
name: set up Python
inputs:
  python-version: {required: true}
runs:
  using: composite
  steps:
    - shell: bash
      run: "true"
"""
_UPLOAD = """\
name: upload
inputs:
  name: {required: true}
  path: {required: true}
  if-no-files-found: {default: ""}
  include-hidden-files: {default: ""}
  overwrite: {default: ""}
  retention-days: {default: ""}
runs:
  using: composite
  steps:
    - shell: bash
      env:
        NAME: ${{ inputs.name }}
        FROM: ${{ inputs.path }}
      run: |
        if [ ! -e "$FROM" ]; then
          echo "::warning::No files were found with the provided path: $FROM"
          exit 0
        fi
        mkdir -p "$STAND_IN_STORE/$NAME"
        if [ -d "$FROM" ]; then FROM="$FROM/."; fi
        cp -R "$FROM" "$STAND_IN_STORE/$NAME/"
"""
# As the action since v5: what is asked for by name, or is the only match of a pattern, is unpacked
# into `path` itself; of several, each into a folder of its own but for merge-multiple.
_DOWNLOAD = """\
name: download
inputs:
  name: {default: ""}
  pattern: {default: ""}
  merge-multiple: {default: "false"}
  path: {required: true}
  run-id: {default: ""}
  github-token: {default: ""}
runs:
  using: composite
  steps:
    - shell: bash
      env:
        NAME: ${{ inputs.name }}
        PATTERN: ${{ inputs.pattern }}
        MERGE: ${{ inputs.merge-multiple }}
        TO: ${{ inputs.path }}
      run: |
        found=()
        for artifact in "$STAND_IN_STORE"/${NAME:-$PATTERN}; do
          if [ -d "$artifact" ]; then found+=("$artifact"); fi
        done
        if [ -n "$NAME" ] && [ "${#found[@]}" -eq 0 ]; then
          echo "::error::Artifact not found for name: $NAME"
          exit 1
        fi
        for artifact in "${found[@]}"; do
          to="$TO/${artifact##*/}"
          if [ "$MERGE" = true ] || [ "${#found[@]}" -eq 1 ]; then to="$TO"; fi
          mkdir -p "$to"
          cp -R "$artifact/." "$to/"
        done
"""
_PACKAGES = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
PERFCI = f"o/perfci@{40 * 'a'}"
"""The address of perfci's actions in these workflows."""
# The jobs make environments of their own. pip is seconds of work there, and no test installs by it:
# perfci's own environment has this one's packages, and the project's has none.
_PYTHON = f"""\
#!/bin/sh
case "$*" in
  *"-m venv "*)
    for folder; do :; done
    {BIN}/python -m venv --without-pip "$folder" || exit
    if [ "${{folder##*/}}" = perfci-action ]; then
      printf '%s\\n' {" ".join(_PACKAGES)} \
        > "$(echo "$folder"/lib/python3*/site-packages)/perfci.pth"
      exit
    fi
    mv "$folder/bin/python" "$folder/bin/python-of-venv"
    cat > "$folder/bin/python" <<END
#!/bin/sh
case "\\$*" in *"-m venv "*) exec "$0" "\\$@" ;; esac
exec "$folder/bin/python-of-venv" "\\$@"
END
    chmod +x "$folder/bin/python"
    exit ;;
esac
exec {BIN}/python "$@"
"""
_STAND_INS = {
    "checkout": _CHECKOUT,
    "setup_python": _SET_UP,
    "upload_artifact": _UPLOAD,
    "download_artifact": _DOWNLOAD,
}


class Act:
    """Runs the workflows of the repository ``source``; artifacts are kept in ``store``."""

    def __init__(self, source: Path, folder: Path, environment: dict[str, str]) -> None:
        self.source = source
        self.folder = folder
        self.store = folder / "artifacts"
        self.store.mkdir()
        self.environment = environment
        self.replaced: list[str] = []
        for name, text in _STAND_INS.items():
            place = folder / "stand-ins" / name
            place.mkdir(parents=True)
            (place / "action.yml").write_text(text)
            pinned = ACTIONS[name].split(" #")[0]
            self.replaced += ["--local-repository", f"{pinned}={place}"]
        own = folder / "stand-ins" / "perfci"
        shutil.copytree(ROOT / "actions", own / "actions")
        shutil.copy(ROOT / "action.yml", own)
        self.replaced += ["--local-repository", f"{PERFCI}={own}"]
        self.python = folder / "python" / "python"
        self.python.parent.mkdir()
        self.python.write_text(_PYTHON)
        self.python.chmod(0o755)

    def run(
        self, workflow: str, name: str, event: dict[str, Any], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``workflow`` as if the event called ``name`` had happened."""
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(event))
        token = variables.pop("token", "")
        command = [
            *(str(BIN / "act"), name, "--workflows", f".github/workflows/{workflow}"),
            *("--eventpath", str(file), "--pull=false", "--no-cache-server", "--no-skip-checkout"),
            *("--platform", "ubuntu-latest=-self-hosted"),
            *("--platform", "self-hosted=-self-hosted"),
            *self.replaced,
        ]
        if token:
            command += ["--secret", f"GITHUB_TOKEN={token}"]
        for key, value in variables.items():
            command += ["--env", f"{key}={value}"]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GH_"))}
        return subprocess.run(
            command,
            cwd=self.source,
            env={
                **kept,
                **self.environment,
                "HOME": str(self.folder),
                "GIT_CONFIG_GLOBAL": str(self.folder / ".gitconfig"),
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                "PATH": os.pathsep.join([str(self.python.parent), str(BIN), os.environ["PATH"]]),
                "NO_PROXY": "127.0.0.1",
                "no_proxy": "127.0.0.1",
                "STAND_IN_SOURCE": str(self.source),
                "STAND_IN_STORE": str(self.store),
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
