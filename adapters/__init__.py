"""Code that runs beside frameworks and counters, a folder for each; core/registry.py lists the folders. Python 3.6."""
