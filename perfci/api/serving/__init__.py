"""Requests for tokens as work, and a server to answer them. Imports the standard library only."""
