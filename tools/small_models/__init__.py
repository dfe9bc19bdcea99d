"""The program that writes the tables of small models (reconcile/products/sweep/small_models), for a new release of a library.

It searches, for each class that a sweep lists, the smallest configuration that the class's own code allows, and inputs for it.
General rules shrink the default configuration, by names and values; errors of the class's code say what to change.
"""
