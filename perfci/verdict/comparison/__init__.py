"""Two sides' workers to comparisons, one per metric: what was seen.

The status of what was tested is ``verdict.judgement``'s, once every comparison of the report is
there to be corrected for.
"""
