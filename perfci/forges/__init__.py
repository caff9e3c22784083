"""Everything that leaves the machine: forges and webhooks. Nothing here decides.

Of a report a forge gets one comment and one check, of a trend one issue per regression. Where a
report may be posted comes from the step's event and from the forge, never from the report.
"""
