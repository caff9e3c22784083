"""The PARENT: schedule and stopping rule (pure), spawning and quieting workers, the session.

It never imports torch, and never judges: it hands runs to ``verdict``.
"""
