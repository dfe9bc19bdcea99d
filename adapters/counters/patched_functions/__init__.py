"""What counters share that patch functions of torch, or hook its modules, and count each call: its capture, bridge and rules.

It has no counter of its own.
"""

COUNTERS = ()
