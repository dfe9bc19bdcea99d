"""Records a step of PyTorch that a program runs: ``reconcile.count``, ``reconcile watch``, ``--ranks``, training callbacks."""
