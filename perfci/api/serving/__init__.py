"""Requests for tokens as work, and a server that answers them. Only the standard library."""
