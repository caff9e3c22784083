"""Comparisons in parts, elsewhere: an array of commands goes in, report files come out.

An engine knows nothing of measuring and hands nothing over but words on a command line.
"""
