"""A folder per counter, and what several counters share. Python 3.6."""
