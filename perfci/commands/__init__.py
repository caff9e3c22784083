"""Use cases take a request and return a result. They don't print, parse arguments or exit."""
