"""The pictures of a run: their data, and how they are drawn."""
