"""Alignment: which layer of one model corresponds to which layer of the other, automatically or from a mapping file."""
