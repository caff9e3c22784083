"""An experiment: do counts of one round spare measuring? ``results.json`` has the outcomes."""
