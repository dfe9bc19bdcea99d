"""Saved ledgers: the differences between two of them, and the reasons."""
