"""What to tell somebody whose perfci lacks one of its extras."""

from __future__ import annotations


def extra_advice(extra: str) -> str:
    """Return how to install ``extra``. perfci is on no index: its bare name may be a stranger's."""
    return (
        f"Install perfci's extra `{extra}` from where perfci came from: of a clone, "
        f"pip install '/path/to/perfci[{extra}]'; of a repository, "
        f"pip install 'perfci[{extra}] @ git+https://github.com/OWNER/perfci@COMMIT'."
    )
