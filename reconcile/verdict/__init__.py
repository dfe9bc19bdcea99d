"""Which counters are right, and the number to publish."""
