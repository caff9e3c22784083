"""Pure: the result files of other tools, read as recorded runs."""
