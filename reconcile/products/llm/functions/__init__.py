"""Explains a function of one's own that returns the FLOPs of a step: what it counts, monomial by monomial, beside what ran."""
