"""Use cases: a request in, a result out. Nothing here prints, parses arguments or exits."""
