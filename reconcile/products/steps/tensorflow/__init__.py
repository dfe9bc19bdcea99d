"""Follows ``fit`` of Keras 3 on TensorFlow: for ``reconcile watch`` and for ``reconcile.keras``."""
