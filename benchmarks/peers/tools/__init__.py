"""One module a tool: ``SETTINGS`` and ``measure(runner, setting, condition)`` to findings."""
