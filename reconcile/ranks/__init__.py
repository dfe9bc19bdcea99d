"""Ranks: what each device of a world multiplies, and what a step costs in all."""
