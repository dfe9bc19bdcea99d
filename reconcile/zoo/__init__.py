"""The zoo as a whole: its gallery, its training steps, its proofs."""
