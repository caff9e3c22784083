"""Recorded sessions, and how right perfci's rules are on them. See README.md."""
