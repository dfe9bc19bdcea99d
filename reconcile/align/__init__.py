"""Which layer of one model is which layer of the other."""
