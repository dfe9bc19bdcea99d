"""What a published number is, out of a closed list of readings."""
