"""Capture, bridge and rules of counters that patch functions of torch and count each call (DeepSpeed, calflops, ptflops).

It has no counter of its own.
"""

COUNTERS = ()
