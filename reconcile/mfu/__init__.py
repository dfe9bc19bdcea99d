"""``reconcile mfu``: a published utilisation as a product of factors."""
