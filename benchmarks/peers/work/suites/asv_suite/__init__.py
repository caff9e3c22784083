"""The suite for asv."""
