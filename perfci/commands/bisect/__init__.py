"""``bisect``: which commit of a range, or which release of a package, made a case slower or faster.

Each step compares one of them with the good end as ``compare`` does, until it is clear on which
side of the change it is; ``perfci.bisect`` says which one, and when the answer is known.
"""
