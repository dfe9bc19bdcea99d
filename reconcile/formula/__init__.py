"""Symbolic counts: exact polynomials of the sizes of a model, found by interpolation of the counts of several runs."""
