"""What a launch of a Triton kernel multiplies, by its compiled program or as the interpreter runs it."""
