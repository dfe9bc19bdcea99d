"""Every pair of the zoo at its own size, its training steps and its proofs: the runs, the pages."""
