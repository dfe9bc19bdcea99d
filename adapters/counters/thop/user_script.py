"""Source of the shortest user program for thop; ``reconcile counter reproduce`` fills in the model."""

PROGRAM = """\
import thop
import torch

{model}
macs, _ = thop.profile(net, (x,), verbose=False)
reported = int(macs)
"""
TABLE = "thop/profile.py:21"
PLACES = {"recounted": "thop/profile.py:209 (a hook for each parent), thop/profile.py:217 (added up for each parent)"}
