"""What a machine lacks: tests that need it are skipped at home, and fail in CI.

There, a whole kind of test could otherwise go missing for months without anybody being told.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip the test, or fail it where ``CI`` is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}; with CI set in the environment that is a failure", pytrace=False)
    pytest.skip(what)


def needed(module: str) -> Any:
    """Return a module that only tests use; where it isn't installed, as ``lacking`` says."""
    if os.environ.get("CI"):
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"{module} is not installed")
