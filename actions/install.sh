# Installs the perfci of this checkout for a step that has a token: what it needs comes by hash, in wheels,
# whose installation runs nothing.
set -euo pipefail
own="$RUNNER_TEMP/perfci-action"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ ! -x "$own/bin/python" ]; then python -P -m venv "$own"; fi
# -P: a file of the project that is named like a library is not taken for it
if ! "$own/bin/python" -P -m perfci --version 2> /dev/null; then
  "$own/bin/python" -P -m pip install --disable-pip-version-check --require-hashes \
    --only-binary :all: -r "$root/templates/workflows/perfci-requirements.txt"
  "$own/bin/python" -P -m pip install --no-deps --no-build-isolation "$root"
fi
