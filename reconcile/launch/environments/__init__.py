"""Python environments to run counters in: finds interpreters, installs pinned packages with uv, and runs a model there."""

CURRENT = "current"
"""The environment of the running interpreter."""
