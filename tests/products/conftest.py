"""The stub of a run, which the tests of commands use."""

from tests.cli.conftest import stub

__all__ = ["stub"]
