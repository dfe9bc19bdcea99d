"""The report of a run on the terminal."""
