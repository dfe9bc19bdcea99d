"""Environments: finding a Python, making an environment, running a model in it."""

CURRENT = "current"
"""The environment of the running interpreter."""
