"""The per-device program of a sharded JAX function, as XLA partitions it: its work and its collectives, for ``--ranks``."""

FLAG = "--xla_force_host_platform_device_count"
"""XLA's flag that makes several devices of the host: in the variable XLA_FLAGS, before JAX begins."""
