"""Serving as work: requests for tokens, and the servers that answer them.

Standard library only; asyncio where an async generator is given. Nothing here decides.
"""
