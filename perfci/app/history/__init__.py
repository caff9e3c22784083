"""``perfci history``: where it is, and what is put in, taken out and thinned."""
