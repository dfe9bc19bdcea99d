"""A folder per counter, and what several counters share. Python 3.6."""

ROOT = "(root)"
"""The entry of the model itself, whose path is empty."""
SUM = "(sum)"
"""The entry of the part of a total that belongs to no module."""
