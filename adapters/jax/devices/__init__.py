"""One device of a JAX program that XLA cuts for several: what it multiplies, and what it passes to the others."""

FLAG = "--xla_force_host_platform_device_count"
"""XLA's flag that makes several devices of the host: in the variable XLA_FLAGS, before JAX begins."""
