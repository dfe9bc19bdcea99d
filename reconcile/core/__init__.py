"""The words that every other folder shares; it imports nothing but itself."""
