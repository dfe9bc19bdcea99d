"""Capture, bridge and rules of counters that patch functions of torch and count each call (DeepSpeed, calflops, ptflops), of
which counters of other calls (torch_flops, pthflops, torchprofile) take parts.

It has no counter of its own.
"""

COUNTERS = ()
