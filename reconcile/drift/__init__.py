"""Baselines: saved traces and ledgers of a model, and what changed since, with the reasons (``reconcile check``)."""
