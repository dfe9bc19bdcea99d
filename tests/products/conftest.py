"""The stub of a run, which the tests of commands use, and forks in place of processes that import PyTorch."""

from tests.cli.conftest import stub
from tests.products.forked import forked, forking

__all__ = ["forked", "forking", "stub"]
