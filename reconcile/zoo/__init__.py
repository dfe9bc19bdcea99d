"""The gallery of the zoo: its pairs, their training steps, their proofs."""
