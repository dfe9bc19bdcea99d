"""Saved ledgers, what moved between two of them, and why."""
