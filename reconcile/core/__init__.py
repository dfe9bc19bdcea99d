"""Records, contracts, registries and helpers that every other folder imports; it imports no other folder."""
