"""PURE: records and policy to comparisons, their statuses, and the verdict.

No files, no clocks, no network: the same records and policy always give the same verdict.
"""
