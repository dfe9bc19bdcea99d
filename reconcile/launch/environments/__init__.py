"""Environments: finding a Python, making an environment, running a model in it."""
