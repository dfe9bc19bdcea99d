"""One device of a JAX program that XLA cuts for several: what it multiplies, and what it passes to the others."""
