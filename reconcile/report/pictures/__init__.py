"""The charts of a run (``--format svg,png``): their data, and how matplotlib draws them."""
