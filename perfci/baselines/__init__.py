"""Stored baselines as files. Never judges, and never takes a damaged file for "no baseline"."""
