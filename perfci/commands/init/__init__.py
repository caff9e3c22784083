"""``init``: what it finds out of a project and its forge, and the files it writes."""
