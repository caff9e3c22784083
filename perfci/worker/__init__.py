"""The CHILD process: one case of one side, measured and sent back on its own pipe.

Standard library and torch only. It decides nothing: raw numbers go to the parent.
"""
