"""Runs a comparison in parts, here or elsewhere: commands go in, report files come out.

An engine knows nothing of measuring. All that it passes to a part is a command line.
"""
