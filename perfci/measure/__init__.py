"""The parent of workers: it checks out both sides, keeps the machine quiet, and measures in rounds.

It never imports torch, and never judges: it hands runs to ``verdict``.
"""
