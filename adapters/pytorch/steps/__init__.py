"""The step that a program runs itself, recorded where it runs: nothing stands in for a part of it."""
