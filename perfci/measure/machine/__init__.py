"""The machine that measures: its cores and cards, what disturbs it, and what keeps it quiet."""
