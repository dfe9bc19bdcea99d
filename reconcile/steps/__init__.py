"""The step that a program runs itself: ``reconcile.count`` around its code, and ``reconcile watch`` of a script."""
