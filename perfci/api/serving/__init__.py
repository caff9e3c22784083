"""Requests for tokens as work. Imports the standard library only, and starts no server."""
