"""Code of the worker process: it imports one framework and runs its counters, in environments as old as Python 3.6."""
