"""Recording of a step that a program runs itself: ``reconcile.count``, ``reconcile watch``, ``--ranks``, training callbacks."""
